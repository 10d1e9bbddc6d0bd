// Pairs that wait to be merged, in the order of a training.
#pragma once

#include <cstdint>
#include <optional>

#include "train/tie_breaker.h"

namespace bpe {

class PairQueue {
 public:
  virtual ~PairQueue() = default;

  // Puts in all pairs that there are.
  virtual void fill() = 0;
  // Puts in a pair that has gained occurrences.
  virtual void gained(uint32_t pair) = 0;
  // A symbol occurs so many times more; update() follows.
  virtual void count_symbol(uint32_t, int64_t) {}
  virtual void update() {}

  // The best pair, with its true count, which stays; none where none is left.
  virtual std::optional<Candidate> top() = 0;
  virtual void pop() = 0;
  // Whether ties alone order two pairs, of which the first is no longer in the queue.
  virtual bool are_tied(const Candidate& a, const Candidate& b) const = 0;
};

}  // namespace bpe
