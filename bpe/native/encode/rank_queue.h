// A priority queue of positions by rank, without comparisons: ranks are small numbers.
//
// A list of positions for each rank, and a tree of bits that says which lists are not empty, 64 of
// them to a word (van Emde Boas 1977 is the idea, taken no further than machine words). All
// positions of a rank come at once and ascending, so that memory is walked through, not jumped in.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bpe {

class RankQueue {
 public:
  // A sequence of so many symbols pushes fewer than 2^32 pairs: three for each of them.
  static constexpr size_t kMostPositions = size_t{1} << 30;

  // For ranks below `ranks`; what is in the queue stays.
  void grow(size_t ranks) {
    if (ranks <= first_.size()) return;
    first_.resize(ranks, kEnd);
    size_t words = ranks;
    for (size_t level = 0; words > 1 || level == 0; ++level) {
      words = (words + 63) / 64;
      if (levels_.size() == level) levels_.emplace_back();
      levels_[level].resize(words, 0);
    }
    // A level that is new says what the one below it holds.
    for (size_t level = 1; level < levels_.size(); ++level)
      for (size_t i = 0; i < levels_[level - 1].size(); ++i)
        if (levels_[level - 1][i]) levels_[level][i / 64] |= uint64_t{1} << (i % 64);
  }

  bool empty() const { return levels_.empty() || levels_.back()[0] == 0; }

  void push(uint32_t rank, uint32_t position) {
    if (first_[rank] == kEnd) {
      size_t i = rank;
      for (std::vector<uint64_t>& level : levels_) {
        const bool was_empty = level[i / 64] == 0;
        level[i / 64] |= uint64_t{1} << (i % 64);
        if (!was_empty) break;
        i /= 64;
      }
    }
    entries_.push_back({position, first_[rank]});
    first_[rank] = static_cast<uint32_t>(entries_.size() - 1);
  }

  // The lowest rank of a queue that is not empty.
  uint32_t lowest() const {
    size_t i = 0;
    for (size_t level = levels_.size(); level-- > 0;)
      i = i * 64 + static_cast<size_t>(std::countr_zero(levels_[level][i]));
    return static_cast<uint32_t>(i);
  }

  // Takes all positions of a rank, ascending.
  void take(uint32_t rank, std::vector<uint32_t>& positions) {
    positions.clear();
    for (uint32_t i = first_[rank]; i != kEnd; i = entries_[i].next)
      positions.push_back(entries_[i].position);
    first_[rank] = kEnd;
    size_t i = rank;
    for (std::vector<uint64_t>& level : levels_) {
      level[i / 64] &= ~(uint64_t{1} << (i % 64));
      if (level[i / 64] != 0) break;
      i /= 64;
    }
    std::ranges::reverse(positions);  // most were put there in order
    if (!std::ranges::is_sorted(positions)) std::ranges::sort(positions);
    if (empty()) entries_.clear();
  }

 private:
  static constexpr uint32_t kEnd = UINT32_MAX;

  struct Entry {
    uint32_t position, next;
  };

  std::vector<uint32_t> first_;                // of each rank
  std::vector<Entry> entries_;                 // of all lists, those taken included
  std::vector<std::vector<uint64_t>> levels_;  // the last is one word
};

}  // namespace bpe
