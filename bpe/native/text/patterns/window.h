// The ends of many pre-tokens at once, for the patterns that cut words, numbers and symbols.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "text/ascii.h"
#include "text/patterns/shared.h"

namespace bpe {

inline Positions64 first_of(Positions64 runs) { return runs & ~(runs << 1); }
inline Positions64 last_of(Positions64 runs) { return runs & ~(runs >> 1); }

// What 64 bytes of text hold.
template <class Block>
struct WindowSets {
  explicit WindowSets(const uint8_t* p)
      : window(p),
        letters(window.template find<&Block::letters>()),
        digits(window.template find<&Block::digits>()),
        white(window.template find<&Block::white>()),
        spaces(window.template find<&Block::spaces>()),
        symbols(~(letters | digits | white)),
        symbol(first_of(symbols) & ~(spaces << 1)),
        known(static_cast<size_t>(std::countr_zero(window.template find<&Block::beyond_ascii>()))) {
  }

  Window<Block> window;
  Positions64 letters, digits, white, spaces, symbols;
  Positions64 symbol;  // a pre-token begins with it
  size_t known;        // the positions below are what they seem
};

// Where the pre-tokens end that the 64 bytes at p, where one begins, tell all of: by arithmetic on
// sets of positions, all at once, where looking for one end after the other has each wait for the
// last. What is rare is left to Pattern::match(), which decides the same. A Pattern has
//
//   more_starts(sets, starts)   where more begin than at symbols and white space; it may lower
//                               sets.known
//   quotes(sets)                what an apostrophe must be to begin a contraction
//   kAnyCase                    whether contractions are ones in capitals, too
//   kEndsWords                  whether contractions end words, and are no pre-tokens
inline constexpr Positions kTooNear = 0xFF;  // what is not ASCII here leaves too little to find
template <class Pattern, class Block>
Positions64 window_ends(const uint8_t* p, const uint8_t* text_end) {
  const auto left = static_cast<size_t>(text_end - p);
  if (left < Block::kSize || (Block(p).beyond_ascii() & kTooNear)) return 0;
  std::array<uint8_t, Window<Block>::kSize> padded;
  if (left < padded.size()) {
    padded.fill(0xFF);  // not known, as what is not ASCII
    std::memcpy(padded.data(), p, left);
  }
  WindowSets<Block> sets(left < padded.size() ? padded.data() : p);
  // White space begins a pre-token, the last of it another one, which may take more along.
  Positions64 starts = sets.symbol | first_of(sets.white) | last_of(sets.white);
  starts = Pattern::more_starts(sets, starts);
  Positions64 quotes = sets.window.template find<&Block::apostrophes>() & Pattern::quotes(sets);
  for (size_t past = 0; quotes; quotes &= quotes - 1) {
    const auto at = static_cast<size_t>(std::countr_zero(quotes));
    const uint8_t* const end = contraction_end<Pattern::kAnyCase>(p + at, text_end);
    if (!end || (Pattern::kEndsWords && at == past)) continue;
    past = static_cast<size_t>(end - p);
    const size_t inside = Pattern::kEndsWords ? at : at + 1;
    starts &= ~positions_below(std::min<size_t>(past, 64)) | positions_below(inside);
    if (past < 64) starts |= Positions64{1} << past;
  }
  // The byte after a position decides about it too; at p itself nothing ends.
  return sets.known < 2 ? 0 : starts & positions_below(sets.known - 1) & ~Positions64{1};
}

}  // namespace bpe
