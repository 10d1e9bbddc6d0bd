// Merges the symbols of one pre-token: always the pair of lowest rank, of equal ones the leftmost.
//
// Short pieces keep the merge of every adjacent pair in an array and search it for the smallest:
// quadratic, and the fastest there is for a dozen symbols. Long pieces keep a linked list of
// symbols and a queue of positions by rank, so that a megabyte of one letter ends at once. Where
// merges are dropped at random, each is asked for by itself: there the queue is a heap.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>

#include "merge_table.h"
#include "rank_queue.h"

namespace bpe {

class Merger {
 public:
  // Merges symbols[0, size) in place until no pair merges or `at_least` symbols are left.
  // Returns how many are left.
  size_t merge(const MergeTable& table, uint32_t* symbols, size_t size, size_t at_least = 1) {
    if (size <= std::max<size_t>(at_least, 1)) return size;
    if (size <= kShort) return merge_short(table, symbols, size, at_least);
    if (size <= RankQueue::kMostPositions) return merge_long(table, symbols, size, at_least);
    return merge_by_heap(table, symbols, size, at_least, [] { return false; });
  }

  // The same, but each time a merge is due, each one that could be made is dropped for this time
  // where drops() says so; it is asked for them in their order, up to the first that is not
  // dropped. Where all are, the rest stays as it is. (BPE-dropout: Provilkov, Emelianenko and Voita
  // 2020, algorithm 1, which asks for the others too, whose answers change nothing.)
  template <typename Drops>
  size_t merge_with_dropout(const MergeTable& table, uint32_t* symbols, size_t size, Drops drops) {
    return size <= 1 ? size : merge_by_heap(table, symbols, size, 1, drops);
  }

 private:
  static constexpr size_t kShort = 32;

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
  // symbol.
  struct Node {
    uint32_t previous, next;
    Rank pair;
  };

  // Calls push(i) for every pair that merges.
  template <typename Push>
  void link(const MergeTable& table, const uint32_t* symbols, size_t size, Push push) {
    if (size >= UINT32_MAX) throw std::invalid_argument("a pre-token has 2^32 - 1 bytes or more");
    end_ = static_cast<uint32_t>(size);
    nodes_.resize(size);
    for (uint32_t i = 0; i < end_; ++i) {
      nodes_[i] = {i - 1, i + 1, i + 1 < end_ ? table.find(symbols[i], symbols[i + 1]) : kNoMerge};
      if (nodes_[i].pair != kNoMerge) push(i);
    }
  }

  // Merges the symbol at i with the next one, and calls push(j) for the pairs that it makes, if
  // they merge.
  template <typename Push>
  void merge_at(const MergeTable& table, uint32_t* symbols, uint32_t i, Push push) {
    const auto renew = [&](uint32_t j) {
      nodes_[j].pair = table.find(symbols[j], symbols[nodes_[j].next]);
      if (nodes_[j].pair != kNoMerge) push(j);
    };
    Node& node = nodes_[i];
    symbols[i] = table.result(node.pair);
    Node& gone = nodes_[node.next];
    gone.pair = node.pair = kNoMerge;
    node.next = gone.next;
    if (node.next != end_) {
      nodes_[node.next].previous = i;
      renew(i);
    }
    if (i != 0) renew(node.previous);
  }

  // Moves what is left of the symbols together and returns how many they are.
  size_t gather(uint32_t* symbols) {
    size_t kept = 0;
    for (uint32_t i = 0; i != end_; i = nodes_[i].next) symbols[kept++] = symbols[i];
    if (nodes_.size() > kKeep) release();
    return kept;
  }

  // What is in the queue, or the heap, stays there when its pair changes: it is stale if its rank
  // is not its pair's.
  size_t merge_long(const MergeTable& table, uint32_t* symbols, size_t size, size_t at_least) {
    queue_.grow(table.ranks());
    link(table, symbols, size, [&](uint32_t i) { queue_.push(nodes_[i].pair, i); });
    size_t left = size;
    while (left > at_least && !queue_.empty()) {
      const Rank rank = queue_.lowest();
      queue_.take(rank, due_);
      bool is_lowest = true;  // rank: no merge has made a pair of a lower one
      for (const uint32_t i : due_) {
        if (nodes_[i].pair != rank) continue;
        if (!is_lowest || left == at_least) {
          queue_.push(rank, i);
          continue;
        }
        merge_at(table, symbols, i, [&](uint32_t j) {
          queue_.push(nodes_[j].pair, j);
          is_lowest &= nodes_[j].pair >= rank;
        });
        --left;
      }
    }
    while (!queue_.empty()) queue_.take(queue_.lowest(), due_);
    return gather(symbols);
  }

  template <typename Drops>
  size_t merge_by_heap(const MergeTable& table, uint32_t* symbols, size_t size, size_t at_least,
                       Drops drops) {
    heap_.clear();
    link(table, symbols, size, [&](uint32_t i) { heap_.push_back(entry(i)); });
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
    const auto push = [&](uint64_t made) {
      heap_.push_back(made);
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    };
    size_t left = size;
    while (left > at_least && !heap_.empty()) {
      const uint64_t smallest = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      heap_.pop_back();
      const auto i = static_cast<uint32_t>(smallest);
      if (nodes_[i].pair == kNoMerge || entry(i) != smallest) continue;
      if (drops()) {
        dropped_.push_back(smallest);
        continue;
      }
      merge_at(table, symbols, i, [&](uint32_t j) { push(entry(j)); });
      --left;
      for (const uint64_t again : dropped_) push(again);
      dropped_.clear();
    }
    dropped_.clear();
    return gather(symbols);
  }

  uint64_t entry(uint32_t i) const { return (uint64_t{nodes_[i].pair} << 32) | i; }

  // After a huge piece its memory is given back: a workspace outlives the call that grew it.
  static constexpr size_t kKeep = size_t{1} << 20;
  void release() {
    nodes_ = {};
    queue_ = {};
    due_ = {};
    heap_ = {};
    dropped_ = {};
  }

  uint32_t end_ = 0;
  std::vector<Node> nodes_;
  RankQueue queue_;
  std::vector<uint32_t> due_;
  std::vector<uint64_t> heap_;
  std::vector<uint64_t> dropped_;  // since the last merge
};

}  // namespace bpe
