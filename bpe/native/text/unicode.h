// Classes of the code points in a text, and runs of them.
#pragma once

#include <array>
#include <cstdint>

#include "text/unicode_tables.h"
#include "text/utf8.h"

namespace bpe {

// Sets of classes, named after what they are in the patterns.
inline constexpr uint8_t kLetter = kUpper | kLower | kCaseless;  // \p{L}
inline constexpr uint8_t kWhite = kSpace | kNewline;             // \s
inline constexpr uint8_t kSymbol = kOther | kMark;               // [^\s\p{L}\p{N}]

// The class of a code point; kMalformed is kOther, like the lone surrogate Python makes of it.
inline uint8_t class_of(uint32_t code_point) {
  if (code_point == kMalformed) return kOther;
  return kClasses[kBlocks[code_point >> 7] << 7 | (code_point & 0x7F)];
}

// The class of every byte that is a code point by itself; 0 for the others.
inline constexpr std::array<uint8_t, 256> kAscii = [] {
  std::array<uint8_t, 256> table{};
  for (size_t i = 0; i < 128; ++i) table[i] = kClasses[kBlocks[0] << 7 | i];
  return table;
}();

struct Character {
  uint8_t kind;         // one class bit
  const uint8_t* next;  // where the character ends
};

// The character at p (p < end).
inline Character read(const uint8_t* p, const uint8_t* end) {
  if (const uint8_t kind = kAscii[*p]) return {kind, p + 1};
  const Decoded step = decode_utf8(p, end);
  return {class_of(step.code_point), p + step.size};
}

// The end of the longest run of characters of the classes in Mask that starts at p.
template <uint8_t Mask>
const uint8_t* skip(const uint8_t* p, const uint8_t* end) {
  for (;;) {
    while (p < end && (kAscii[*p] & Mask)) ++p;
    if (p == end || *p < 0x80) return p;
    const Character character = read(p, end);
    if (!(character.kind & Mask)) return p;
    p = character.next;
  }
}

}  // namespace bpe
