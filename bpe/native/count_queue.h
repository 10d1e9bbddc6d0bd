// Pairs that wait to be merged, the most frequent first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pair_table.h"
#include "tie_breaker.h"

namespace bpe {

// A heap by (count, tie rule). Entries are lazy: one is put in when a pair gains occurrences, and
// when it comes out with a count that has shrunk it goes back with the true one.
class CountQueue {
 public:
  struct Entry {
    int64_t count;
    TieBreaker::Candidate candidate;
  };

  // Pairs that occur fewer times than `least` are left out.
  CountQueue(const TieBreaker& ties, const PairTable& pairs, int64_t least)
      : ties_(ties), pairs_(pairs), least_(least) {}

  // Puts in all pairs that there are.
  void fill() {
    for (uint32_t pair = 0; pair < pairs_.size(); ++pair) {
      const PairRecord& record = pairs_[pair];
      if (record.count < least_) continue;
      const bool by_place = ties_.rule() == Ties::first_seen;
      heap_.push_back({record.count, {pair, by_place ? record.postings.positions[0] : 0}});
    }
    std::make_heap(heap_.begin(), heap_.end(), later());
  }

  // Puts in a pair that has gained occurrences, the postings `detail` (0 for the first ones).
  void gained(uint32_t pair, uint32_t detail) {
    const int64_t count = pairs_[pair].count;
    if (count < std::max<int64_t>(least_, 1)) return;
    if (ties_.rule() == Ties::first_seen) detail = ties_.first_occurrence(pair);
    heap_.push_back({count, {pair, detail}});
    std::push_heap(heap_.begin(), heap_.end(), later());
  }

  // The best pair, with its true count; null when none is left.
  const Entry* top() {
    while (!heap_.empty()) {
      Entry entry = heap_.front();
      if (refreshed(entry)) return &heap_.front();
      std::pop_heap(heap_.begin(), heap_.end(), later());
      if (entry.count >= least_) {
        heap_.back() = entry;
        std::push_heap(heap_.begin(), heap_.end(), later());
      } else {
        heap_.pop_back();
      }
    }
    return nullptr;
  }

  void pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later());
    heap_.pop_back();
  }

 private:
  // For the heaps of the standard library: whether b comes before a.
  struct Later {
    const TieBreaker& ties;
    bool operator()(const Entry& a, const Entry& b) const {
      return a.count != b.count ? a.count < b.count : ties.before(b.candidate, a.candidate);
    }
  };
  Later later() const { return {ties_}; }

  // Brings an entry up to date; true if it was. What is stale can only have come too early.
  bool refreshed(Entry& entry) const {
    const Entry old = entry;
    const uint32_t pair = entry.candidate.pair;
    entry.count = pairs_[pair].count;
    if (ties_.rule() == Ties::first_seen && entry.count > 0) {
      entry.candidate.detail = ties_.first_occurrence(pair);
      if (entry.candidate.detail != old.candidate.detail) return false;
    }
    return entry.count == old.count;
  }

  const TieBreaker& ties_;
  const PairTable& pairs_;
  int64_t least_;
  std::vector<Entry> heap_;
};

}  // namespace bpe
