// What the scanners of several patterns have in common.
#pragma once

#include <cstddef>
#include <cstdint>

#include "text/ascii.h"
#include "text/unicode.h"

namespace bpe {

// A pattern is a class of static functions, by which Scanner cuts a text where the pattern does:
//
//   kName, kPattern          the name, and the regular expression ("" where there is none)
//   kDropsText               whether what the pattern does not match is lost
//   begin(p, end)            where the next pre-token begins, which may be `end`
//   match(p, end)            where the pre-token at p ends (p < end)
//   kHasWindow               whether there is ends_ahead<Block>(p, end): the ends of many
//   (window.h)
//
// Patterns are matched leftmost, first alternative first. At any character few alternatives can
// match, and what backtracking would find is known before it happens (the comments say why), so
// each step looks a bounded number of times at each character: time is linear in the text, whatever
// the text is.
struct PatternDefaults {
  static constexpr bool kDropsText = false;
  static constexpr bool kHasWindow = false;

  static const uint8_t* begin(const uint8_t* p, const uint8_t*) { return p; }
};

// White space at p that nothing takes along: at the end of the text, if AllAtEnd, all of it
// (\s++$); else, if Lines, up to the last line end in it (\s*[\r\n]); else all if it ends the text,
// or all but the last character, which may go with what follows (\s+(?!\S)); else that one
// character. The run holds well-formed characters only, so it can be walked backwards.
template <bool AllAtEnd, bool Lines>
const uint8_t* white_space_end(const uint8_t* p, const uint8_t* end) {
  const uint8_t* e = skip<kWhite>(p, end);
  if (AllAtEnd && e == end) return e;
  if constexpr (Lines)
    for (const uint8_t* q = e; q > p; --q)
      if (kAscii[q[-1]] & kNewline) return q;
  if (e == end) return e;
  const uint8_t* last = e - 1;
  while ((*last & 0xC0) == 0x80) --last;
  return last == p ? e : last;
}

// The end of 's, 't, 'm, 'd, 'll, 've or 're at p (p may be the end), else null. In any case, s is
// also U+017F (long s), which folds to it.
template <bool AnyCase>
const uint8_t* contraction_end(const uint8_t* p, const uint8_t* end) {
  if (end - p < 2 || *p != '\'') return nullptr;
  const auto at = [p](size_t i) -> uint8_t { return AnyCase ? p[i] | 0x20 : p[i]; };
  const uint8_t first = at(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return p + 2;
  if (end - p < 3) return nullptr;
  const uint8_t second = at(2);
  if ((first == 'l' && second == 'l') || ((first == 'v' || first == 'r') && second == 'e'))
    return p + 3;
  if (AnyCase && p[1] == 0xC5 && p[2] == 0xBF) return p + 3;
  return nullptr;
}

}  // namespace bpe
