// How often a pair of equal symbols occurs in a row of such symbols.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "table/names.h"
#include "train/word_array.h"

namespace bpe {

// Other pairs never overlap, so that the two ways agree on them.
enum class PairCounts : uint8_t {
  overlapping,  // at every position: x x x x holds (x, x) three times
  disjoint,     // as often as a merge would join it: two times
};

inline constexpr std::array<std::string_view, 2> kPairCounts = {"overlapping", "disjoint"};

// Throws std::invalid_argument, which lists the names, on others.
inline PairCounts pair_counts(std::string_view name) {
  return from_name<PairCounts>(name, kPairCounts, "way to count pairs");
}

// A *stretch* is a maximal row of equal symbols in a word. This counts the symbols equal to the one
// at `i` that are next to it, on the side that step(at) leads to, without it.
template <typename Step>
uint32_t equal_beside(const WordArray& words, WordArray::Position i, Step step) {
  uint32_t equal = 0;
  for (auto at = step(i); at != WordArray::kNone && words.at(at) == words.at(i); at = step(at))
    ++equal;
  return equal;
}

// Calls visit(symbol, length) for each stretch of two symbols or more in a word, from its first
// symbol on.
template <typename Visit>
void each_stretch(const WordArray& words, WordArray::Position i, Visit&& visit) {
  while (i != WordArray::kNone) {
    const uint32_t symbol = words.at(i);
    uint32_t length = 1;
    for (i = words.next(i); i != WordArray::kNone && words.at(i) == symbol; i = words.next(i))
      ++length;
    if (length > 1) visit(symbol, length);
  }
}

}  // namespace bpe
