// Merges the symbols of short pre-tokens, several at a time.
//
// What a merge costs is the wait for the merge table, which no cache near the core holds. While the
// pairs of one word are fetched, the others go on: eight words side by side take a third of the
// time that they take one after the other (benchmarks/LOG.md).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "merge_table.h"

namespace bpe {

class ShortMerger {
 public:
  static constexpr size_t kMostSymbols = 64;

  // Symbols, from 1 to kMostSymbols of them, that are merged in place.
  struct Word {
    uint32_t* symbols;
    size_t size;
  };

  // Whether the ranks of a table are small enough for pair_at().
  static bool takes(const MergeTable& table) { return table.ranks() <= kMostRanks; }

  // Merges the symbols of each word, always the pair of lowest rank, of equal ones the leftmost,
  // until no pair merges or `at_least` are left. Their sizes become what is left.
  void merge(const MergeTable& table, std::span<Word> words, size_t at_least = 1) {
    size_t running = 0, started = 0;
    const auto start = [&](Lane& lane) {
      for (; started < words.size(); ++started) {
        if (words[started].size <= std::max<size_t>(at_least, 1)) continue;
        lane.start(table, words[started++]);
        return true;
      }
      return false;
    };
    while (running < lanes_.size() && start(lanes_[running])) ++running;
    while (running > 0) {
      for (size_t i = 0; i < running;) {
        if (lanes_[i].step(table, at_least)) {
          ++i;
        } else if (start(lanes_[i])) {
          ++i;
        } else if (i != --running) {
          lanes_[i] = lanes_[running];
        }
      }
    }
  }

 private:
  static constexpr size_t kLanes = 8;

  // A merge and where it could be made: the smallest is the one that is due. Signed, because that
  // is how the least vector instructions compare.
  static constexpr int32_t kNone = INT32_MAX;
  static constexpr size_t kMostRanks = size_t{1} << 25;
  static int32_t pair_at(Rank rank, size_t i) {
    return rank == kNoMerge ? kNone : static_cast<int32_t>(rank * kMostSymbols + i);
  }

  // A word on its way. Symbols stay where they are: a merge leaves gaps.
  class Lane {
   public:
    void start(const MergeTable& table, Word& word) {
      word_ = &word;
      left_ = word.size;
      padded_ = (word.size + kStep - 1) / kStep * kStep;
      for (size_t i = 0; i + 1 < word.size; ++i)
        set(i, table.find(word.symbols[i], word.symbols[i + 1]));
      for (size_t i = word.size - 1; i < padded_; ++i) pairs_[i] = kNone;
      for (size_t i = 0; i <= word.size; ++i) {
        next_[i] = static_cast<uint8_t>(i + 1);
        previous_[i] = static_cast<uint8_t>(i - 1);
      }
      waiting_ = 0;
    }

    // Makes the merge that is due, and begins to look up the pairs that it makes; false at the end.
    bool step(const MergeTable& table, size_t at_least) {
      for (size_t i = 0; i < waiting_; ++i) set(wait_at_[i], table.finish(waits_[i]));
      waiting_ = 0;
      int32_t best = kNone;
      for (size_t i = 0; i < padded_; ++i) best = std::min(best, pairs_[i]);
      if (best == kNone) return finish();
      const size_t at = static_cast<uint32_t>(best) % kMostSymbols;
      const size_t gone = next_[at], after = next_[gone];
      word_->symbols[at] = results_[at];
      if (--left_ == at_least) {
        next_[at] = static_cast<uint8_t>(after);
        return finish();
      }
      next_[at] = static_cast<uint8_t>(after);
      previous_[after] = static_cast<uint8_t>(at);
      pairs_[gone] = pairs_[at] = kNone;
      if (after < word_->size) look_up(table, at, after);
      if (at > 0) look_up(table, previous_[at], at);
      return true;
    }

   private:
    static constexpr size_t kStep = 8;

    void set(size_t i, const MergeTable::Merge& merge) {
      pairs_[i] = pair_at(merge.rank, i);
      results_[i] = merge.result;
    }

    void look_up(const MergeTable& table, size_t i, size_t next) {
      MergeTable::Merge merge;
      MergeTable::Search& search = waits_[waiting_];
      if (table.begin(word_->symbols[i], word_->symbols[next], merge, search)) {
        set(i, merge);
      } else {
        table.prefetch(search);
        pairs_[i] = kNone;
        wait_at_[waiting_++] = static_cast<uint8_t>(i);
      }
    }

    bool finish() {
      size_t kept = 0;
      for (size_t i = 0; i < word_->size; i = next_[i]) word_->symbols[kept++] = word_->symbols[i];
      word_->size = kept;
      return false;
    }

    Word* word_;
    size_t left_, padded_;
    size_t waiting_;  // pairs that are being fetched
    std::array<uint8_t, 2> wait_at_;
    std::array<MergeTable::Search, 2> waits_;
    std::array<uint8_t, kMostSymbols + 1> next_, previous_;  // where the neighbours are
    alignas(16) std::array<int32_t, kMostSymbols> pairs_;
    std::array<uint32_t, kMostSymbols> results_;
  };

  std::array<Lane, kLanes> lanes_;
};

}  // namespace bpe
