// Merges the symbols of short pre-tokens.
//
// Each pair keeps the number of its merge, and each step searches all for the smallest, four at a
// time: quadratic, and the fastest there is for some dozens of symbols. Symbols stay where they
// are; a set of places says which are still there, and finds neighbours without a loop.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include "table/merge_table.h"

namespace bpe {

class ShortMerger {
 public:
  static constexpr size_t kMostSymbols = 64;

  // Whether the ranks of a table are small enough for number().
  static bool takes(const MergeTable& table) { return table.ranks() <= kMostRanks; }

  // Merges symbols[0, size), 2 to kMostSymbols of them, in place: always the pair of lowest rank,
  // of equal ones the leftmost, until no pair merges or `at_least` are left. Returns how many are.
  static size_t merge(const MergeTable& table, uint32_t* symbols, size_t size, size_t at_least) {
    alignas(16) std::array<float, kMostSymbols> pairs;  // number() of those that merge
    std::array<uint32_t, kMostSymbols> results;         // what they merge to
    const auto look_up = [&](size_t at, size_t next) {
      const MergeTable::Merge merge = table.find(symbols[at], symbols[next]);
      pairs[at] = number(merge.rank, at);
      results[at] = merge.result;
    };
    const size_t padded = (size + kStep - 1) / kStep * kStep;
    for (size_t i = 0; i + 1 < size; ++i) look_up(i, i + 1);
    for (size_t i = size - 1; i < padded; ++i) pairs[i] = kNone;
    uint64_t there = ~uint64_t{0} >> (kMostSymbols - size);  // places that hold a symbol
    for (size_t left = size; left > at_least; --left) {
      const float best = least(pairs.data(), padded);
      if (best == kNone) break;
      const size_t at = std::bit_cast<uint32_t>(best) % kMostSymbols;
      const uint64_t after = there & ~uint64_t{1} << at;
      const auto gone = static_cast<size_t>(std::countr_zero(after));
      there ^= uint64_t{1} << gone;
      symbols[at] = results[at];
      pairs[gone] = pairs[at] = kNone;
      if (const uint64_t next = after & (after - 1))
        look_up(at, static_cast<size_t>(std::countr_zero(next)));
      if (const uint64_t before = there & ((uint64_t{1} << at) - 1))
        look_up(static_cast<size_t>(std::bit_width(before)) - 1, at);
    }
    size_t kept = 0;
    for (; there != 0; there &= there - 1) symbols[kept++] = symbols[std::countr_zero(there)];
    return kept;
  }

 private:
  static constexpr size_t kStep = 8;

  // The number of a merge, by rank and then by place, is the bits of a float: only of those can
  // every processor find the smallest of four at once. They are ordered as their bits are; those
  // that are used are neither denormal nor infinite, so that no mode of the processor changes them.
  static constexpr uint32_t kLeast = 0x00800000, kGreatest = 0x7F7FFFFF;
  static constexpr float kNone = std::bit_cast<float>(kGreatest);
  static constexpr size_t kMostRanks = (kGreatest - kLeast) / kMostSymbols;
  static float number(Rank rank, size_t place) {
    if (rank == kNoMerge) return kNone;
    return std::bit_cast<float>(kLeast + static_cast<uint32_t>(rank * kMostSymbols + place));
  }

  // The smallest of `size` numbers, a multiple of kStep.
  static float least(const float* numbers, size_t size) {
#ifdef __SSE2__
    __m128 one = _mm_load_ps(numbers), two = _mm_load_ps(numbers + 4);
    for (size_t i = kStep; i < size; i += kStep) {
      one = _mm_min_ps(one, _mm_load_ps(numbers + i));
      two = _mm_min_ps(two, _mm_load_ps(numbers + i + 4));
    }
    one = _mm_min_ps(one, two);
    one = _mm_min_ps(one, _mm_movehl_ps(one, one));
    return _mm_cvtss_f32(_mm_min_ss(one, _mm_shuffle_ps(one, one, 1)));
#else
    return *std::min_element(numbers, numbers + size);
#endif
  }
};

}  // namespace bpe
