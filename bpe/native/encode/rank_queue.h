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
#include <utility>
#include <vector>

namespace bpe {

class RankQueue {
 public:
  // A sequence of so many symbols pushes fewer than 2^32 pairs: three for each of them.
  static constexpr size_t kMostPositions = size_t{1} << 30;

  // For ranks below `ranks`; what is in the queue stays.
  void grow(size_t ranks) {
    if (ranks <= lists_.size()) return;
    lists_.resize(ranks);
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
    List& list = lists_[rank];
    if (list.size == 0) {
      size_t i = rank;
      for (std::vector<uint64_t>& level : levels_) {
        const bool was_empty = level[i / 64] == 0;
        level[i / 64] |= uint64_t{1} << (i % 64);
        if (!was_empty) break;
        i /= 64;
      }
    }
    const uint32_t place = list.size++ % Chunk::kSize;
    if (place == 0) list.last = new_chunk(list.last);
    chunks_[list.last].positions[place] = position;
  }

  // The lowest rank of a queue that is not empty.
  uint32_t lowest() const {
    size_t i = 0;
    for (size_t level = levels_.size(); level-- > 0;)
      i = i * 64 + static_cast<size_t>(std::countr_zero(levels_[level][i]));
    return static_cast<uint32_t>(i);
  }

  // Takes all positions of a rank that has some, ascending.
  void take(uint32_t rank, std::vector<uint32_t>& positions) {
    const List list = std::exchange(lists_[rank], {});
    positions.resize(list.size);
    uint32_t at = list.last;
    for (size_t size = list.size; size > 0;) {
      Chunk& chunk = chunks_[at];
      const size_t begin = (size - 1) / Chunk::kSize * Chunk::kSize;
      std::copy_n(chunk.positions, size - begin, positions.begin() + begin);
      size = begin;
      at = size > 0 ? chunk.before : std::exchange(chunk.before, free_);
    }
    free_ = list.last;
    size_t i = rank;
    for (std::vector<uint64_t>& level : levels_) {
      level[i / 64] &= ~(uint64_t{1} << (i % 64));
      if (level[i / 64] != 0) break;
      i /= 64;
    }
    if (!std::ranges::is_sorted(positions)) std::ranges::sort(positions);
    if (empty()) {
      chunks_.clear();
      free_ = kNone;
    }
  }

 private:
  // Positions of one rank, as many as fill a cache line: to walk from chunk to chunk is to wait for
  // memory.
  struct alignas(64) Chunk {
    static constexpr uint32_t kSize = 15;

    uint32_t before;  // the chunk of the same rank that was full; or another free one
    uint32_t positions[kSize];
  };
  struct List {
    uint32_t last = 0;  // chunk
    uint32_t size = 0;
  };

  uint32_t new_chunk(uint32_t before) {
    if (free_ == kNone) {
      chunks_.push_back({before, {}});
      return static_cast<uint32_t>(chunks_.size() - 1);
    }
    return std::exchange(free_, std::exchange(chunks_[free_].before, before));
  }

  static constexpr uint32_t kNone = UINT32_MAX;

  std::vector<List> lists_;  // of each rank
  std::vector<Chunk> chunks_;
  uint32_t free_ = kNone;                      // a chunk of no list
  std::vector<std::vector<uint64_t>> levels_;  // the last is one word
};

}  // namespace bpe
