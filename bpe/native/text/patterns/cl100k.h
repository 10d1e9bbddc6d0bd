// The pattern of cl100k and its kin: any one character but a letter, a number, CR or LF goes with
// the letters after it, numbers are cut short, and line ends go with the symbols before them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/patterns/window.h"

namespace bpe {

// A Pattern of this family has in its own words, in addition to what the others have:
//
//   kDigits           the most digits of a number
//   kAllAtEnd         whether white space at the end of the text stays together
//   kInitial          the classes that a word may begin with
//   word_end(p, end)  where the letters end that begin at p
//   after_symbols(byte)                  whether it goes with symbols before it
//   case_starts(sets), slashes(sets)     what o200k (o200k.h) has more
template <class Pattern>
struct PrefixedWords : PatternDefaults {
  static const uint8_t* match(const uint8_t* p, const uint8_t* end) {
    if constexpr (!Pattern::kEndsWords)
      if (const uint8_t* e = contraction_end<kAnyCase>(p, end)) return e;
    const Character c = read(p, end);
    if (c.kind & Pattern::kInitial) return Pattern::word_end(p, end);
    if (c.kind & kNumber) return number_end(c.next, end);
    if (c.next < end) {
      const Character after = read(c.next, end);
      if (!(c.kind & kNewline) && (after.kind & Pattern::kInitial))
        return Pattern::word_end(c.next, end);
      if (*p == ' ' && (after.kind & kSymbol)) return symbols_end(after.next, end);
    }
    if (c.kind & kSymbol) return symbols_end(c.next, end);
    return white_space_end<Pattern::kAllAtEnd, /*Lines=*/true>(p, end);
  }

  static constexpr bool kHasWindow = true;
  static constexpr bool kAnyCase = true, kEndsWords = false;
  template <class Block>
  static Positions64 more_starts(WindowSets<Block>& sets, Positions64 starts) {
    const Positions64 alone = sets.symbol & last_of(sets.symbols);  // goes with letters after it
    starts |= number_starts(sets.digits) |
              (first_of(sets.letters) & ~(sets.white << 1) & ~(alone << 1)) |
              Pattern::case_starts(sets);
    if (const Positions64 newlines = sets.window.template find<&Block::newlines>()) {
      if (!are_last(newlines, sets.white, Pattern::slashes(sets), sets.known))
        sets.known = std::min(sets.known, static_cast<size_t>(std::countr_zero(newlines)));
      // They go with symbols, or else white space, before them, and end it.
      starts &= ~newlines | (first_of(sets.white) & ~(sets.symbols << 1));
      starts |= last_of(newlines) << 1;
    }
    return starts;
  }
  template <class Block>
  static Positions64 quotes(const WindowSets<Block>& sets) {
    return sets.symbol;
  }

  static constexpr uint8_t kInitial = kLetter;
  static const uint8_t* word_end(const uint8_t* p, const uint8_t* end) {
    return skip<kLetter>(p, end);
  }
  static bool after_symbols(uint8_t byte) { return byte == '\r' || byte == '\n'; }
  template <class Block>
  static Positions64 case_starts(const WindowSets<Block>&) {
    return 0;
  }
  template <class Block>
  static Positions64 slashes(const WindowSets<Block>&) {
    return 0;
  }

 private:
  // Of a number whose first digit ends at p.
  static const uint8_t* number_end(const uint8_t* p, const uint8_t* end) {
    for (int more = 1; more < Pattern::kDigits && p < end; ++more) {
      const Character c = read(p, end);
      if (!(c.kind & kNumber)) break;
      p = c.next;
    }
    return p;
  }

  // Of the rest of the symbols, and the line ends right after them.
  static const uint8_t* symbols_end(const uint8_t* p, const uint8_t* end) {
    p = skip<kSymbol>(p, end);
    while (p < end && Pattern::after_symbols(*p)) ++p;
    return p;
  }

  // Numbers begin after each three digits, or after each.
  static Positions64 number_starts(Positions64 digits) {
    static_assert(Pattern::kDigits == 1 || Pattern::kDigits == 3);
    if constexpr (Pattern::kDigits == 1) return digits;
    const Positions64 fourth = digits & digits << 1 & digits << 2 & digits << 3;
    Positions64 starts = first_of(digits);
    for (Positions64 more = starts << 3 & fourth; more; more = more << 3 & fourth) starts |= more;
    return starts;
  }

  // Whether after the line ends, and white space after them, no other line end follows, and no
  // slash right after them.
  static bool are_last(Positions64 newlines, Positions64 white, Positions64 slashes, size_t known) {
    const Positions64 after = last_of(newlines) << 1;
    const Positions64 rest = white & ~newlines & positions_below(known);
    const Positions64 sum = rest + (after & rest);  // carries to the end of white space
    return sum >= rest && !(sum & ~rest & (newlines | ~positions_below(known))) &&
           !(after & slashes);
  }
};

struct Cl100k : PrefixedWords<Cl100k> {
  static constexpr std::string_view kName = "cl100k";
  // The pat_str of tiktoken 0.14's cl100k_base.
  static constexpr std::string_view kPattern =
      R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+)"
      R"(| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s)";
  static constexpr int kDigits = 3;
  static constexpr bool kAllAtEnd = true;
};

// The Split patterns of the published tokenizer.json files.
struct Llama3 : PrefixedWords<Llama3> {
  static constexpr std::string_view kName = "llama3";
  static constexpr std::string_view kPattern =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
      R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  static constexpr int kDigits = 3;
  static constexpr bool kAllAtEnd = false;
};

struct Qwen2 : PrefixedWords<Qwen2> {
  static constexpr std::string_view kName = "qwen2";
  static constexpr std::string_view kPattern =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
      R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  static constexpr int kDigits = 1;
  static constexpr bool kAllAtEnd = false;
};

}  // namespace bpe
