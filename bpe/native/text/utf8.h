// Strict UTF-8 (RFC 3629) out of arbitrary bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "table/bytes.h"

namespace bpe {

// One step through a text: a code point and the bytes it takes.
struct Decoded {
  uint32_t code_point;  // kMalformed where no well-formed sequence starts; then size is 1
  uint32_t size;
};

inline constexpr size_t kCodePoints = 0x110000;
inline constexpr uint32_t kMalformed = 0xFFFFFFFF;

// Decodes what starts at p (p < end). Overlong forms, surrogates, values above U+10FFFF, lone
// continuation bytes and cut-off sequences are malformed, one byte at a time: the steps of
// Python's bytes.decode("utf-8", "surrogateescape").
inline Decoded decode_utf8(const uint8_t* p, const uint8_t* end) {
  constexpr Decoded malformed{kMalformed, 1};
  const auto continues = [](uint8_t byte) { return (byte & 0xC0) == 0x80; };
  const uint32_t lead = p[0];
  const ptrdiff_t left = end - p;
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) {
    if (lead < 0xC2 || left < 2 || !continues(p[1])) return malformed;
    return {(lead & 0x1F) << 6 | (p[1] & 0x3Fu), 2};
  }
  if (lead < 0xF0) {
    if (left < 3 || !continues(p[1]) || !continues(p[2])) return malformed;
    const uint32_t value = (lead & 0x0F) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
    if (value < 0x800 || (value >> 11) == (0xD800 >> 11)) return malformed;
    return {value, 3};
  }
  if (lead > 0xF4 || left < 4 || !continues(p[1]) || !continues(p[2]) || !continues(p[3]))
    return malformed;
  const uint32_t value =
      (lead & 0x07) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
  if (value < 0x10000 || value > 0x10FFFF) return malformed;
  return {value, 4};
}

// Where the character begins that ends at `end` (begin < end).
inline const uint8_t* character_before(const uint8_t* begin, const uint8_t* end) {
  const uint8_t* p = end - 1;
  while (p != begin && end - p < 4 && (*p & 0xC0) == 0x80) --p;
  return p + decode_utf8(p, end).size == end ? p : end - 1;
}

// Writes a code point and returns the end of it.
inline uint8_t* write_utf8(uint32_t code_point, uint8_t* out) {
  constexpr std::array<uint8_t, 4> kLeads{0, 0xC0, 0xE0, 0xF0};
  int left = (code_point >= 0x80) + (code_point >= 0x800) + (code_point >= 0x10000);
  *out++ = static_cast<uint8_t>(kLeads[static_cast<size_t>(left)] | code_point >> 6 * left);
  while (left-- > 0) *out++ = static_cast<uint8_t>(0x80 | (code_point >> 6 * left & 0x3F));
  return out;
}

// The end of the ASCII characters that begin at p, or up to 15 of them before it.
inline const uint8_t* skip_ascii_blocks(const uint8_t* p, const uint8_t* end) {
  while (end - p >= 16) {
    uint64_t words[2];
    std::memcpy(words, p, 16);
    if ((words[0] | words[1]) & 0x8080808080808080) break;
    p += 16;
  }
  return p;
}

// Whether a text is well-formed as a whole.
inline bool is_utf8(Bytes text) {
  const uint8_t* const end = text.data() + text.size();
  for (const uint8_t* p = text.data(); (p = skip_ascii_blocks(p, end)) != end;) {
    const Decoded step = decode_utf8(p, end);
    if (step.code_point == kMalformed) return false;
    p += step.size;
  }
  return true;
}

}  // namespace bpe
