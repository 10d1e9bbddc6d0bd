// Merges the symbols of one pre-token: always the pair of lowest rank, of equal ones the leftmost.
//
// Short pieces keep the merge of every adjacent pair in an array and search it for the smallest:
// quadratic, and the fastest there is for a dozen symbols. Long pieces keep a linked list of
// symbols and a heap of (rank, position): O(n log n), so a megabyte of one letter ends at once.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

#include "merge_table.h"

namespace bpe {

class Merger {
 public:
  // Merges symbols[0, size) in place until no pair merges or `at_least` symbols are left.
  // Returns how many are left.
  size_t merge(const MergeTable& table, uint32_t* symbols, size_t size, size_t at_least = 1) {
    if (size <= std::max<size_t>(at_least, 1)) return size;
    return size <= kShort ? merge_short(table, symbols, size, at_least)
                          : merge_long(table, symbols, size, at_least, [] { return false; });
  }

  // The same, but each time a merge is due, each one that could be made is dropped for this time
  // where drops() says so; it is asked for them in their order, up to the first that is not
  // dropped. Where all are, the rest stays as it is. (BPE-dropout: Provilkov, Emelianenko and Voita
  // 2020, algorithm 1, which asks for the others too, whose answers change nothing.)
  template <typename Drops>
  size_t merge_with_dropout(const MergeTable& table, uint32_t* symbols, size_t size, Drops drops) {
    return size <= 1 ? size : merge_long(table, symbols, size, 1, drops);
  }

 private:
  static constexpr size_t kShort = 64;

  static size_t merge_short(const MergeTable& table, uint32_t* symbols, size_t size,
                            size_t at_least) {
    std::array<Rank, kShort> merges;  // merges[i]: of symbols i and i + 1
    for (size_t i = 0; i + 1 < size; ++i) merges[i] = table.find(symbols[i], symbols[i + 1]);
    while (size > at_least) {
      const auto last = merges.begin() + static_cast<ptrdiff_t>(size - 1);
      const auto best = std::min_element(merges.begin(), last);
      if (best == last || *best == kNoMerge) break;
      const size_t i = static_cast<size_t>(best - merges.begin());
      symbols[i] = table.result(*best);
      std::copy(symbols + i + 2, symbols + size, symbols + i + 1);
      if (best + 1 != last) std::copy(best + 2, last, best + 1);
      --size;
      if (i + 1 < size) merges[i] = table.find(symbols[i], symbols[i + 1]);
      if (i > 0) merges[i - 1] = table.find(symbols[i - 1], symbols[i]);
    }
    return size;
  }

  // A symbol lives at the position of its first byte; `pair` is the merge of it and the next
  // symbol. Heap entries are never removed: one whose rank is not its pair's is stale.
  struct Node {
    uint32_t previous, next;
    Rank pair;
  };

  template <typename Drops>
  size_t merge_long(const MergeTable& table, uint32_t* symbols, size_t size, size_t at_least,
                    Drops drops) {
    if (size >= UINT32_MAX) throw std::invalid_argument("a pre-token has 2^32 - 1 bytes or more");
    const auto end = static_cast<uint32_t>(size);
    nodes_.resize(size);
    heap_.clear();
    for (uint32_t i = 0; i < end; ++i) {
      nodes_[i] = {i - 1, i + 1, i + 1 < end ? table.find(symbols[i], symbols[i + 1]) : kNoMerge};
      if (nodes_[i].pair != kNoMerge) heap_.push_back(entry(i));
    }
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());

    const auto push = [&](uint64_t made) {
      heap_.push_back(made);
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    };
    const auto renew = [&](uint32_t i) {
      nodes_[i].pair = table.find(symbols[i], symbols[nodes_[i].next]);
      if (nodes_[i].pair != kNoMerge) push(entry(i));
    };
    size_t left = size;
    while (left > at_least && !heap_.empty()) {
      const uint64_t smallest = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      heap_.pop_back();
      const auto i = static_cast<uint32_t>(smallest);
      Node& node = nodes_[i];
      if (node.pair == kNoMerge || entry(i) != smallest) continue;
      if (drops()) {
        dropped_.push_back(smallest);
        continue;
      }
      symbols[i] = table.result(node.pair);
      Node& gone = nodes_[node.next];
      gone.pair = node.pair = kNoMerge;
      node.next = gone.next;
      --left;
      if (node.next != end) {
        nodes_[node.next].previous = i;
        renew(i);
      }
      if (i != 0) renew(node.previous);
      for (const uint64_t again : dropped_) push(again);
      dropped_.clear();
    }
    dropped_.clear();
    size_t kept = 0;
    for (uint32_t i = 0; i != end; i = nodes_[i].next) symbols[kept++] = symbols[i];
    if (nodes_.size() > kKeep) release();
    return kept;
  }

  uint64_t entry(uint32_t i) const { return (uint64_t{nodes_[i].pair} << 32) | i; }

  // After a huge piece its memory is given back: a workspace outlives the call that grew it.
  static constexpr size_t kKeep = size_t{1} << 20;
  void release() {
    nodes_ = {};
    heap_ = {};
    dropped_ = {};
  }

  std::vector<Node> nodes_;
  std::vector<uint64_t> heap_;
  std::vector<uint64_t> dropped_;  // since the last merge
};

}  // namespace bpe
