// Merges the symbols of one pre-token: always the pair of lowest rank, of equal ones the leftmost.
//
// Short pieces: see short_merger.h. Long ones keep a linked list of symbols and a queue of
// positions by rank, so that a megabyte of one letter ends at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
    if (!dropout && size <= ShortMerger::kMostSymbols && ShortMerger::takes(table))
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

  // Queues every pair that merges.
  void link(const MergeTable& table, const uint32_t* symbols, size_t size) {
    if (size >= UINT32_MAX) throw std::invalid_argument("a pre-token has 2^32 - 1 bytes or more");
    end_ = static_cast<uint32_t>(size);
    nodes_.resize(size);
    for (uint32_t i = 0; i < end_; ++i) {
      nodes_[i] = {i - 1, i + 1, {}};
      if (i + 1 < end_) look_up(table, symbols, i);
    }
  }

  // Queues the pair at i, if it merges. Inlined: a long pre-token is little else.
  [[gnu::always_inline]] void look_up(const MergeTable& table, const uint32_t* symbols,
                                      uint32_t i) {
    nodes_[i].pair = table.find(symbols[i], symbols[nodes_[i].next]);
    if (nodes_[i].pair.rank != kNoMerge) queue_.push(nodes_[i].pair.rank, i);
  }

  // Merges the symbol at i with the next one, and queues the pairs that it makes.
  void merge_at(const MergeTable& table, uint32_t* symbols, uint32_t i) {
    Node& node = nodes_[i];
    symbols[i] = node.pair.result;
    Node& gone = nodes_[node.next];
    gone.pair = node.pair = {};
    node.next = gone.next;
    if (node.next != end_) {
      nodes_[node.next].previous = i;
      look_up(table, symbols, i);
    }
    if (i != 0) look_up(table, symbols, node.previous);
  }

  // Moves what is left of the symbols together and returns how many they are.
  size_t gather(uint32_t* symbols) {
    size_t kept = 0;
    for (uint32_t i = 0; i != end_; i = nodes_[i].next) symbols[kept++] = symbols[i];
    if (nodes_.size() > kKeep) release();
    return kept;
  }

  // What is in the queue stays there when its pair changes: it is stale if its rank is not its
  // pair's.
  size_t merge_long(const MergeTable& table, uint32_t* symbols, size_t size, size_t at_least) {
    queue_.begin(table.ranks(), dropout.has_value());
    link(table, symbols, size);
    size_t left = size;
    for (RankQueue::Entry due; (due = queue_.pop()) != RankQueue::kNone;) {
      const auto i = static_cast<uint32_t>(due);
      if (left == at_least || nodes_[i].pair.rank != due >> 32) continue;
      if (dropout && dropout->drops()) {
        dropped_.push_back(due);
        continue;
      }
      merge_at(table, symbols, i);
      --left;
      for (const RankQueue::Entry again : dropped_)
        queue_.push(static_cast<Rank>(again >> 32), static_cast<uint32_t>(again));
      dropped_.clear();
    }
    dropped_.clear();
    return gather(symbols);
  }

  // After a huge piece its memory is given back: a workspace outlives the call that grew it.
  static constexpr size_t kKeep = size_t{1} << 20;
  void release() {
    nodes_ = {};
    queue_ = {};
    dropped_ = {};
  }

  uint32_t end_ = 0;
  std::vector<Node> nodes_;
  RankQueue queue_;
  std::vector<RankQueue::Entry> dropped_;  // since the last merge
};

}  // namespace bpe
