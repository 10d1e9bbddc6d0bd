// Merges the symbols of one pre-token: always the pair of lowest rank, of equal ones the leftmost.
//
// Short pieces: see short_merger.h. Long ones keep a linked list of symbols and a queue of
// positions by rank, so that a megabyte of one letter ends at once. Where merges are dropped at
// random, each is asked for by itself: there the queue is a heap.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <vector>

#include "encode/random.h"
#include "encode/rank_queue.h"
#include "encode/short_merger.h"
#include "table/merge_table.h"

namespace bpe {

class Merger {
 public:
  // Where set, each time a merge is due, each one that could be made is dropped for this time where
  // drops() says so; it is asked for them in their order, up to the first that is not dropped.
  // Where all are, the rest is unchanged. (BPE-dropout: Provilkov, Emelianenko and Voita 2020,
  // algorithm 1, which asks for the others too, whose answers change nothing.)
  std::optional<Dropout> dropout;

  // Merges symbols[0, size) in place until no pair merges or `at_least` symbols are left.
  // Returns how many are left. Encoding asks for 1; ranked.h, which loads and converts files, stops
  // at 2 to see the last merge of each token.
  size_t merge(const MergeTable& table, uint32_t* symbols, size_t size, size_t at_least = 1) {
    if (size <= std::max<size_t>(at_least, 1)) return size;
    if (dropout || size > RankQueue::kMostPositions)
      return merge_by_heap(table, symbols, size, at_least);
    if (size <= ShortMerger::kMostSymbols && ShortMerger::takes(table))
      return ShortMerger::merge(table, symbols, size, at_least);
    return merge_long(table, symbols, size, at_least);
  }

 private:
  // A symbol lives at the position of its first byte; `pair` is the merge of it and the next
  // symbol.
  struct Node {
    uint32_t previous, next;
    MergeTable::Merge pair;
  };

  // Calls push(i) for every pair that merges.
  template <typename Push>
  void link(const MergeTable& table, const uint32_t* symbols, size_t size, Push push) {
    if (size >= UINT32_MAX) throw std::invalid_argument("a pre-token has 2^32 - 1 bytes or more");
    end_ = static_cast<uint32_t>(size);
    nodes_.resize(size);
    for (uint32_t i = 0; i < end_; ++i) {
      nodes_[i] = {i - 1, i + 1, {}};
      if (i + 1 < end_) nodes_[i].pair = table.find(symbols[i], symbols[i + 1]);
      if (nodes_[i].pair.rank != kNoMerge) push(i);
    }
  }

  // Merges the symbol at i with the next one, and calls push(j) for the pairs that it makes, if
  // they merge.
  template <typename Push>
  void merge_at(const MergeTable& table, uint32_t* symbols, uint32_t i, Push push) {
    const auto renew = [&](uint32_t j) {
      nodes_[j].pair = table.find(symbols[j], symbols[nodes_[j].next]);
      if (nodes_[j].pair.rank != kNoMerge) push(j);
    };
    Node& node = nodes_[i];
    symbols[i] = node.pair.result;
    Node& gone = nodes_[node.next];
    gone.pair = node.pair = {};
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
  // is not its pair's. A merge may make a pair of a lower rank, in files that nobody trained: the
  // positions that still wait go to the heap then, each of them once.
  size_t merge_long(const MergeTable& table, uint32_t* symbols, size_t size, size_t at_least) {
    heap_.clear();
    queue_.grow(table.ranks());
    link(table, symbols, size, [&](uint32_t i) { queue_.push(nodes_[i].pair.rank, i); });
    const auto push = [&](uint32_t i) { queue_.push(nodes_[i].pair.rank, i); };
    size_t left = size;
    while (left > at_least && !(queue_.empty() && heap_.empty())) {
      const Rank rank = queue_.empty() ? kNoMerge : queue_.lowest();
      if (!heap_.empty() && heap_.front() >> 32 <= rank) {
        if (heap_.front() >> 32 == rank) park(rank);  // those of both in the order of the text
        const uint64_t smallest = pop_heap();
        const auto i = static_cast<uint32_t>(smallest);
        if (is_stale(smallest)) continue;
        merge_at(table, symbols, i, push);
        --left;
        continue;
      }
      queue_.take_lowest(due_);
      bool is_lowest = true;  // rank: no merge has made a pair of a lower one
      for (size_t k = 0; k < due_.size() && left > at_least; ++k) {
        const uint32_t i = due_[k];
        if (nodes_[i].pair.rank != rank) continue;
        merge_at(table, symbols, i, [&](uint32_t j) {
          push(j);
          is_lowest &= nodes_[j].pair.rank >= rank;
        });
        --left;
        if (is_lowest) continue;
        for (++k; k < due_.size(); ++k) push_heap(rank, due_[k]);
      }
    }
    while (!queue_.empty()) queue_.take_lowest(due_);
    return gather(symbols);
  }

  void park(Rank rank) {
    queue_.take_lowest(due_);
    for (const uint32_t i : due_) push_heap(rank, i);
  }

  size_t merge_by_heap(const MergeTable& table, uint32_t* symbols, size_t size, size_t at_least) {
    heap_.clear();
    dropped_.clear();
    link(table, symbols, size, [&](uint32_t i) { heap_.push_back(entry(nodes_[i].pair.rank, i)); });
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
    size_t left = size;
    while (left > at_least && !heap_.empty()) {
      const uint64_t smallest = pop_heap();
      if (is_stale(smallest)) continue;
      if (dropout && dropout->drops()) {
        dropped_.push_back(smallest);
        continue;
      }
      merge_at(table, symbols, static_cast<uint32_t>(smallest),
               [&](uint32_t j) { push_heap(nodes_[j].pair.rank, j); });
      --left;
      for (const uint64_t again : dropped_) push_heap(again);
      dropped_.clear();
    }
    return gather(symbols);
  }

  static uint64_t entry(Rank rank, uint32_t i) { return (uint64_t{rank} << 32) | i; }
  bool is_stale(uint64_t entry) const {
    return nodes_[static_cast<uint32_t>(entry)].pair.rank != entry >> 32;
  }
  void push_heap(Rank rank, uint32_t i) { push_heap(entry(rank, i)); }
  void push_heap(uint64_t entry) {
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  uint64_t pop_heap() {
    const uint64_t smallest = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
    return smallest;
  }

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
  std::vector<uint64_t> heap_;     // of rank and position
  std::vector<uint64_t> dropped_;  // since the last merge
};

}  // namespace bpe
