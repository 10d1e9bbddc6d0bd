// A priority queue of positions by rank, which is a small number.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace bpe {

// A list of positions for each rank, and a heap of the ranks whose lists are not empty: all
// positions of a rank come at once and ascending, so that memory is walked through, not jumped in.
class RankQueue {
 public:
  // A sequence of so many symbols pushes fewer than 2^32 pairs: three for each of them.
  static constexpr size_t kMostPositions = size_t{1} << 30;

  // For ranks below `ranks`; what is in the queue stays.
  void grow(size_t ranks) { lists_.resize(std::max(ranks, lists_.size())); }

  bool empty() const { return ranks_.empty(); }

  void push(uint32_t rank, uint32_t position) {
    if (lists_[rank].empty()) ranks_.push(rank);
    lists_[rank].push_back(position);
  }

  // The lowest rank of a queue that is not empty.
  uint32_t lowest() const { return ranks_.top(); }

  // Takes all positions of the lowest rank, ascending.
  void take_lowest(std::vector<uint32_t>& positions) {
    positions = std::exchange(lists_[lowest()], {});
    ranks_.pop();
    if (!std::ranges::is_sorted(positions)) std::ranges::sort(positions);
  }

 private:
  std::vector<std::vector<uint32_t>> lists_;  // of each rank
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ranks_;
};

}  // namespace bpe
