// Pairs that wait to be merged, the most frequent first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "train/pair_queue.h"
#include "train/pair_table.h"
#include "train/tie_breaker.h"

namespace bpe {

// A heap by (count, tie rule). Entries are lazy: one is put in when a pair gains occurrences, and
// when it comes out with a count that has shrunk it goes back with the true one. Only pairs that
// occur often enough to be merged soon are in it: when it is empty the limit is halved, and all
// pairs are looked through for those it lets in. Most pairs are never merged, and never in it.
class CountQueue : public PairQueue {
  // For the heaps of the standard library: whether b comes before a.
  auto later() const {
    return [this](const Candidate& a, const Candidate& b) {
      return a.count != b.count ? a.count < b.count : ties_.before(b, a);
    };
  }

 public:
  // Pairs that occur fewer times than `least`, which is at least 1, are left out.
  CountQueue(const TieBreaker& ties, const PairTable& pairs, int64_t least)
      : ties_(ties), pairs_(pairs), least_(least) {}

  void fill() override {
    int64_t most = 0;
    for (uint32_t pair = 0; pair < pairs_.size(); ++pair) most = std::max(most, pairs_[pair].count);
    let_in(std::max(least_, most / 2), most);
  }

  void gained(uint32_t pair) override {
    const int64_t count = pairs_[pair].count;
    if (count < limit_) return;
    heap_.push_back({count, pair, ties_.first(pair)});
    std::push_heap(heap_.begin(), heap_.end(), later());
  }

  std::optional<Candidate> top() override {
    for (;;) {
      while (!heap_.empty()) {
        Candidate entry = heap_.front();
        if (refreshed(entry)) return entry;
        std::pop_heap(heap_.begin(), heap_.end(), later());
        if (entry.count >= limit_) {
          heap_.back() = entry;
          std::push_heap(heap_.begin(), heap_.end(), later());
        } else {
          heap_.pop_back();
        }
      }
      if (limit_ <= least_) return std::nullopt;
      let_in(std::max(least_, limit_ / 2), limit_ - 1);
    }
  }

  void pop() override {
    std::pop_heap(heap_.begin(), heap_.end(), later());
    heap_.pop_back();
  }

  bool are_tied(const Candidate& a, const Candidate& b) const override {
    return a.count == b.count;
  }

 private:
  // Fills the empty heap with the pairs that occur from `least` to `most` times.
  void let_in(int64_t least, int64_t most) {
    limit_ = least;
    for (uint32_t pair = 0; pair < pairs_.size(); ++pair) {
      const int64_t count = pairs_[pair].count;
      if (count < least || count > most) continue;
      heap_.push_back({count, pair, ties_.first(pair)});
    }
    std::make_heap(heap_.begin(), heap_.end(), later());
  }

  // Brings an entry up to date; true if it was. What is stale can only have come too early: counts
  // shrink, and see TieBreaker::first.
  bool refreshed(Candidate& entry) const {
    const Candidate old = entry;
    entry.count = pairs_[old.pair].count;
    entry.first = ties_.first(old.pair);
    return entry.count == old.count && entry.first == old.first;
  }

  const TieBreaker& ties_;
  const PairTable& pairs_;
  int64_t least_;
  int64_t limit_ = 0;  // pairs that occur less often are not in the heap
  std::vector<Candidate> heap_;
};

}  // namespace bpe
