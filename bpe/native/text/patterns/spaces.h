// The pre-tokenizers of textbooks, which cut at spaces if at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "text/normalizer.h"
#include "text/patterns/shared.h"
#include "text/unicode.h"

namespace bpe {

// The whole text.
struct None : PatternDefaults {
  static constexpr std::string_view kName = "none", kPattern = "";

  static const uint8_t* match(const uint8_t*, const uint8_t* end) { return end; }
};

struct Words : PatternDefaults {
  static constexpr std::string_view kName = "words", kPattern = R"(\S+)";
  static constexpr bool kDropsText = true;

  static const uint8_t* begin(const uint8_t* p, const uint8_t* end) { return skip<kWhite>(p, end); }
  static const uint8_t* match(const uint8_t* p, const uint8_t* end) {
    return skip<kLetter | kNumber | kSymbol>(p, end);
  }
};

// U+0020 alone parts words.
struct Spaces : PatternDefaults {
  static constexpr std::string_view kName = "spaces", kPattern = "[^ ]+";
  static constexpr bool kDropsText = true;

  static const uint8_t* begin(const uint8_t* p, const uint8_t* end) {
    while (p != end && *p == ' ') ++p;
    return p;
  }
  static const uint8_t* match(const uint8_t* p, const uint8_t* end) {
    const void* space = std::memchr(p, ' ', static_cast<size_t>(end - p));
    return space ? static_cast<const uint8_t*>(space) : end;
  }
};

// One character of punctuation, or all that is neither that nor white space.
struct Bert : PatternDefaults {
  static constexpr std::string_view kName = "bert",
                                    kPattern = R"([!-/:-@\[-`{-~\p{P}]|[^\s!-/:-@\[-`{-~\p{P}]+)";
  static constexpr bool kDropsText = true;

  static const uint8_t* begin(const uint8_t* p, const uint8_t* end) { return skip<kWhite>(p, end); }
  static const uint8_t* match(const uint8_t* begin, const uint8_t* end) {
    for (const uint8_t* p = begin; p != end;) {
      const Decoded step = decode_utf8(p, end);
      if (class_of(step.code_point) & kWhite) return p;
      if (properties_of(step.code_point) & kPunctuation) return p == begin ? p + step.size : p;
      p += step.size;
    }
    return end;
  }
};

}  // namespace bpe
