// The pattern of o200k: that of cl100k, where a word ends before its next capital letters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/patterns/cl100k.h"

namespace bpe {

struct O200k : PrefixedWords<O200k> {
  static constexpr std::string_view kName = "o200k";
  // The pat_str of tiktoken 0.14's o200k_base.
  static constexpr std::string_view kPattern =
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
      R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
      R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  static constexpr int kDigits = 3;
  static constexpr bool kAllAtEnd = false;
  static constexpr bool kEndsWords = true;

  // A mark is part of a word: as the optional prefix or as its first character, the match ends at
  // the same place, so it is never taken as the prefix.
  static constexpr uint8_t kInitial = kLetter | kMark;

  static const uint8_t* word_end(const uint8_t* p, const uint8_t* end) {
    const uint8_t* e = cased_word_end(p, end);
    const uint8_t* suffix = contraction_end<kAnyCase>(e, end);
    return suffix ? suffix : e;
  }

  static bool after_symbols(uint8_t byte) { return byte == '\r' || byte == '\n' || byte == '/'; }

  template <class Block>
  static Positions64 case_starts(const WindowSets<Block>& sets) {
    return sets.window.template find<&Block::upper>() & sets.window.template find<&Block::lower>()
                                                            << 1;
  }
  template <class Block>
  static Positions64 slashes(const WindowSets<Block>& sets) {
    return sets.window.template find<&Block::slashes>();
  }
  template <class Block>
  static Positions64 quotes(const WindowSets<Block>& sets) {
    return sets.letters << 1;
  }

 private:
  // [upper]*[lower]+ or else [upper]+[lower]*, where caseless letters and marks are in both sets.
  // [upper]* takes all it can. If a lower letter follows, [lower]+ begins there. Otherwise
  // [upper]* gives characters back until [lower]+ can take one: the last one of both sets, and no
  // more, since only upper letters come after it. With none of both sets the first form fails, and
  // the second is the run of upper letters.
  static const uint8_t* cased_word_end(const uint8_t* p, const uint8_t* end) {
    const uint8_t* e = p;
    const uint8_t* both = nullptr;  // the end of the last character that is in both sets
    for (;;) {
      e = skip<kUpper>(e, end);
      const uint8_t* run = e;
      e = skip<kCaseless | kMark>(e, end);
      if (e == run) break;
      both = e;
    }
    const uint8_t* lower = skip<kLower | kCaseless | kMark>(e, end);
    if (lower != e) return lower;
    return both ? both : e;
  }
};

}  // namespace bpe
