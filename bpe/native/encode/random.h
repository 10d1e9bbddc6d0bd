// Random numbers that are the same everywhere.
#pragma once

#include <cstdint>

namespace bpe {

// SplitMix64: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (2014),
// section 4, with the constants of java.util.SplittableRandom.
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // A multiple of 2^-53 in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

// Drops merges at random.
struct Dropout {
  double rate;
  SplitMix64 random;

  bool drops() { return random.uniform() < rate; }
};

}  // namespace bpe
