// A priority queue of positions in a text, by the rank of what is there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "table/merge_table.h"

namespace bpe {

// A list of positions for each rank, and a heap of the ranks whose lists are not empty: all
// positions of a rank come one after the other, so that memory is walked through, not jumped in.
// A merge may make a pair of a lower rank than that list's, in files that nobody trained: these
// wait in a heap.
class RankQueue {
 public:
  // A rank and a position, which compare so.
  using Entry = uint64_t;
  static constexpr Entry kNone = UINT64_MAX;
  static constexpr Entry entry(Rank rank, uint32_t position) {
    return Entry{rank} << 32 | position;
  }

  // Of an empty queue: for ranks below `ranks`. Of few entries, the heap alone is faster.
  void begin(size_t ranks, bool few) {
    if (!few) lists_.resize(std::max(ranks, lists_.size()));
    in_heap_ = few ? ranks : 0;
  }

  void push(Rank rank, uint32_t position) {
    if (rank < in_heap_) return heap_.push(entry(rank, position));
    if (lists_[rank].empty()) ranks_.push(rank);
    lists_[rank].push_back(position);
  }

  // Takes the least entry; kNone where none is left.
  Entry pop() {
    if (heap_.empty() && next_ == due_.size() && !take_list()) return kNone;
    const Entry due = next_ < due_.size() ? entry(due_rank_, due_[next_]) : kNone;
    if (heap_.empty() || due < heap_.top()) {
      ++next_;
      return due;
    }
    const Entry early = heap_.top();
    heap_.pop();
    return early;
  }

 private:
  bool take_list() {
    if (ranks_.empty()) return false;
    due_rank_ = ranks_.top();
    ranks_.pop();
    due_ = std::exchange(lists_[due_rank_], {});
    if (!std::ranges::is_sorted(due_)) std::ranges::sort(due_);
    next_ = 0;
    in_heap_ = due_rank_ + size_t{1};
    return true;
  }

  template <typename T>
  using Heap = std::priority_queue<T, std::vector<T>, std::greater<>>;

  std::vector<std::vector<uint32_t>> lists_;  // of each rank
  Heap<Rank> ranks_;
  std::vector<uint32_t> due_;  // the list that was taken last
  size_t next_ = 0;            // of it
  Rank due_rank_ = 0;
  size_t in_heap_ = 0;  // ranks below wait in the heap
  Heap<Entry> heap_;
};

}  // namespace bpe
