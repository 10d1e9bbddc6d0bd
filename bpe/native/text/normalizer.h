// What normalizers need of the core: lowercase letters, marks dropped, and which texts a
// normalization form leaves as they are.
//
// Bytes that are not well-formed UTF-8 stay as they are, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "table/buffer.h"
#include "text/lowercase_tables.h"
#include "text/normalizer_tables.h"
#include "text/text_column.h"
#include "text/utf8.h"

namespace bpe {

inline uint8_t properties_of(uint32_t code_point) {
  if (code_point == kMalformed) return 0;
  return kProperties[kPropertyBlocks[code_point >> 7] << 7 | (code_point & 0x7F)];
}

// The first character of [p, end) with one of the properties, which no ASCII character may have.
inline const uint8_t* find_property(uint8_t properties, const uint8_t* p, const uint8_t* end) {
  while ((p = skip_ascii_blocks(p, end)) != end) {
    for (const uint8_t* const block = p; p != end && p - block < 16;) {
      const Decoded step = decode_utf8(p, end);
      if (step.code_point >= 0x80 && (properties_of(step.code_point) & properties)) return p;
      p += step.size;
    }
  }
  return end;
}

inline uint8_t ascii_lowercase(uint8_t byte) {
  return static_cast<uint8_t>(byte + (static_cast<uint8_t>(byte - 'A') < 26 ? 0x20 : 0));
}

// Writes each character's lowercase letter; no letter depends on those around it (SpecialCasing has
// one such rule, for a final sigma). Returns the end of what it wrote.
inline uint8_t* write_lowercase(const uint8_t* p, const uint8_t* end, uint8_t* out) {
  while (p != end) {
    while (end - p >= 16) {
      uint8_t all = 0;
      for (int i = 0; i < 16; ++i) {
        all |= p[i];
        out[i] = ascii_lowercase(p[i]);
      }
      if (all & 0x80) break;
      p += 16;
      out += 16;
    }
    while (p != end && *p < 0x80) *out++ = ascii_lowercase(*p++);
    for (; p != end && *p >= 0x80;) {
      const Decoded step = decode_utf8(p, end);
      if (step.code_point == kMalformed) {
        *out++ = *p;
      } else if (step.code_point == 0x130) {
        out = write_utf8(0x307, write_utf8('i', out));  // the only one that becomes two
      } else {
        const uint32_t c = step.code_point;
        const int32_t distance = kLowercase[kLowercaseBlocks[c >> 7] << 7 | (c & 0x7F)];
        out = write_utf8(c + static_cast<uint32_t>(distance), out);
      }
      p += step.size;
    }
  }
  return out;
}

inline ByteStrings lowercase(const TextColumn& column) {
  ByteStrings texts;
  // Two bytes become three at most (U+023A, U+0130); and a block is written at once.
  texts.data.resize(column.bytes() + column.bytes() / 2 + 16);
  texts.offsets.reserve(column.rows() + 1);
  uint8_t* out = texts.data.data();
  for (size_t row = 0; row < column.rows(); ++row) {
    const Bytes text = column[row];
    out = write_lowercase(text.data(), text.data() + text.size(), out);
    texts.offsets.push_back(out - texts.data.data());
  }
  texts.data.resize(static_cast<size_t>(out - texts.data.data()));
  return texts;
}

// The texts without the characters that have one of the properties.
inline ByteStrings strip(uint8_t properties, const TextColumn& column) {
  ByteStrings texts;
  texts.offsets.reserve(column.rows() + 1);
  for (size_t row = 0; row < column.rows(); ++row) {
    const Bytes text = column[row];
    const uint8_t* const end = text.data() + text.size();
    for (const uint8_t* p = text.data(); p != end;) {
      const uint8_t* const mark = find_property(properties, p, end);
      texts.data.insert(texts.data.end(), p, mark);
      p = mark == end ? end : mark + decode_utf8(mark, end).size;
    }
    texts.end();
  }
  return texts;
}

// The rows, in order, that hold a character with one of the properties.
inline std::vector<int64_t> rows_with(uint8_t properties, const TextColumn& column) {
  std::vector<int64_t> rows;
  for (size_t row = 0; row < column.rows(); ++row) {
    const Bytes text = column[row];
    const uint8_t* const end = text.data() + text.size();
    if (find_property(properties, text.data(), end) != end)
      rows.push_back(static_cast<int64_t>(row));
  }
  return rows;
}

}  // namespace bpe
