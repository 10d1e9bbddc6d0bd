// The pattern of GPT-2: at most one space goes with the letters, numbers or symbols after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/patterns/window.h"

namespace bpe {

struct Gpt2 : PatternDefaults {
  static constexpr std::string_view kName = "gpt2";
  // The pat_str of tiktoken 0.14's r50k_base.
  static constexpr std::string_view kPattern =
      R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)";

  static const uint8_t* match(const uint8_t* p, const uint8_t* end) {
    if (const uint8_t* e = contraction_end<kAnyCase>(p, end)) return e;
    Character c = read(p, end);
    if (*p == ' ' && c.next < end) {
      const Character after = read(c.next, end);
      if (!(after.kind & kWhite)) c = after;
    }
    if (c.kind & kLetter) return skip<kLetter>(c.next, end);
    if (c.kind & kNumber) return skip<kNumber>(c.next, end);
    if (c.kind & kSymbol) return skip<kSymbol>(c.next, end);
    return white_space_end</*AllAtEnd=*/true, /*Lines=*/false>(p, end);
  }

  static constexpr bool kHasWindow = true;
  static constexpr bool kAnyCase = false, kEndsWords = false;
  template <class Block>
  static Positions64 more_starts(const WindowSets<Block>& sets, Positions64 starts) {
    return starts | ((first_of(sets.letters) | first_of(sets.digits)) & ~(sets.spaces << 1));
  }
  template <class Block>
  static Positions64 quotes(const WindowSets<Block>& sets) {
    return sets.symbol;
  }
};

}  // namespace bpe
