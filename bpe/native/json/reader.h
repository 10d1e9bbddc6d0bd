// A strict reader of JSON that gives up easily: it accepts a text only where Python's json.loads
// reads it the same way, and leaves every other one, good or bad, to be judged there. So it needs
// no error messages, and what is exotic (an escaped key, a duplicate one, NaN) needs no code.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>
#include <system_error>
#include <vector>

#include "text/ascii.h"
#include "text/utf8.h"

namespace bpe {

class JsonReader {
  // Of the character after a backslash; 0: it has none.
  static constexpr auto kMeanings = [] {
    constexpr std::string_view names = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    std::array<uint8_t, 256> table{};
    for (size_t i = 0; i < names.size(); ++i)
      table[static_cast<uint8_t>(names[i])] = static_cast<uint8_t>(meanings[i]);
    return table;
  }();

 public:
  enum class Kind { absent, null, string, integer, other };
  struct Value {
    Kind kind = Kind::absent;
    const uint8_t* begin = nullptr;  // a string without its quotes, still escaped
    const uint8_t* end = nullptr;
    bool escaped = false;
    bool lone_surrogate = false;

    std::string_view chars() const {
      return {reinterpret_cast<const char*>(begin), static_cast<size_t>(end - begin)};
    }

    // Appends what a string means, or an integer as it is written. Surrogates are paired.
    // (The result is never longer than the value was, so a block that is read can be written.)
    void append_to(std::vector<uint8_t>& out) const {
      const size_t size = out.size();
      out.resize(size + static_cast<size_t>(end - begin));
      uint8_t* to = out.data() + size;
      for (const uint8_t* p = begin; p < end;) {
        if (static_cast<size_t>(end - p) >= AsciiBlock::kSize) {
          std::memcpy(to, p, AsciiBlock::kSize);
          const Positions escapes = AsciiBlock(p).equal('\\');
          const int plain = escapes != 0 ? std::countr_zero(escapes) : int{AsciiBlock::kSize};
          p += plain;
          to += plain;
          if (escapes == 0) continue;
        } else if (*p != '\\') {
          *to++ = *p++;
          continue;
        }
        if (p[1] != 'u') {
          *to++ = kMeanings[p[1]];
          p += 2;
          continue;
        }
        uint32_t unit = 0, low = 0;
        code_unit(p, end, unit);
        p += 6;
        if ((unit >> 10) == (0xD800 >> 10) && code_unit(p, end, low)) {
          unit = 0x10000 + ((unit & 0x3FF) << 10 | (low & 0x3FF));
          p += 6;
        }
        to = write_utf8(unit, to);
      }
      out.resize(static_cast<size_t>(to - out.data()));
    }
  };
  static constexpr size_t kMaxDepth = 200;

  // `keys` is memory to work in.
  JsonReader(Bytes text, std::vector<size_t>& keys)
      : p_(text.data()), end_(p_ + text.size()), keys_(keys) {
    keys_.clear();
  }

  // Whether nothing but white space is left.
  bool blank() {
    skip_space();
    return p_ == end_;
  }

 protected:
  void skip_space() {
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\t' || *p_ == '\r' || *p_ == '\n')) ++p_;
  }

  bool take(uint8_t byte) {
    if (p_ == end_ || *p_ != byte) return false;
    ++p_;
    return true;
  }

  bool word(std::string_view expected) {
    const std::string_view left(reinterpret_cast<const char*>(p_), static_cast<size_t>(end_ - p_));
    if (!left.starts_with(expected)) return false;
    p_ += expected.size();
    return true;
  }

  // The items of a bracket that begins here, each read by item().
  template <typename Item>
  bool items(uint8_t open, uint8_t close, Item item) {
    if (!take(open) || level_++ == kMaxDepth) return false;
    skip_space();
    if (!take(close)) {
      do {
        skip_space();
        if (!item()) return false;
        skip_space();
      } while (take(','));
      if (!take(close)) return false;
    }
    --level_;
    return true;
  }

  // The object that begins here; member(key) reads each value. No key is escaped, or there twice:
  // their hashes are kept until the object ends.
  template <typename Member>
  bool object(Member member) {
    const auto first = static_cast<std::ptrdiff_t>(keys_.size());
    Value key;
    const auto read_member = [&] {
      if (!string(key) || key.escaped) return false;
      keys_.push_back(std::hash<std::string_view>{}(key.chars()));
      return colon() && member(key.chars());
    };
    if (!items('{', '}', read_member)) return false;
    std::sort(keys_.begin() + first, keys_.end());
    const bool distinct = std::adjacent_find(keys_.begin() + first, keys_.end()) == keys_.end();
    keys_.erase(keys_.begin() + first, keys_.end());
    return distinct;
  }

  bool value(Value& value) {
    if (p_ == end_) return false;
    const auto ignored = [this] {
      Value inside;
      return this->value(inside);
    };
    value.kind = Kind::other;
    switch (*p_) {
      case '[':
        return items('[', ']', ignored);
      case '{':
        return object([&](std::string_view) { return ignored(); });
      case '"':
        value.kind = Kind::string;
        return string(value);
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        value.kind = Kind::null;
        return word("null");
      default:
        return number(value);
    }
  }

  bool colon() {
    skip_space();
    if (!take(':')) return false;
    skip_space();
    return true;
  }

  bool digits() {
    const uint8_t* first = p_;
    while (p_ < end_ && *p_ >= '0' && *p_ <= '9') ++p_;
    return p_ > first;
  }

  bool number(Value& value) {
    value.begin = p_;
    take('-');
    if (!take('0') && !digits()) return false;
    value.end = p_;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!digits()) return false;
    }
    if (p_ == value.end) value.kind = Kind::integer;
    return true;
  }

  // A string: no raw control characters, valid escapes, well-formed UTF-8.
  bool string(Value& value) {
    if (!take('"')) return false;
    value.begin = p_;
    value.escaped = value.lone_surrogate = false;
    for (;;) {
      skip_plain();
      if (p_ == end_) return false;
      const uint8_t byte = *p_;
      if (byte == '"') {
        value.end = p_++;
        return true;
      }
      if (byte == '\\') {
        value.escaped = true;
        if (!escape(value)) return false;
      } else if (byte < 0x20) {
        return false;
      } else if (byte < 0x80) {
        ++p_;
      } else {
        const Decoded step = decode_utf8(p_, end_);
        if (step.code_point == kMalformed) return false;
        p_ += step.size;
      }
    }
  }

  // Passes over whole blocks of bytes up to a quote, a backslash, a control character or one
  // outside ASCII. The bytes after the last block are left to the caller.
  void skip_plain() {
    for (; static_cast<size_t>(end_ - p_) >= AsciiBlock::kSize; p_ += AsciiBlock::kSize) {
      const AsciiBlock block(p_);
      const Positions stops =
          block.beyond_ascii() | block.equal('"') | block.equal('\\') | block.between(0, 0x1F, 0);
      if (stops != 0) {
        p_ += std::countr_zero(stops);
        return;
      }
    }
  }

  bool escape(Value& value) {
    ++p_;
    if (p_ == end_) return false;
    if (*p_ != 'u') return kMeanings[*p_++] != 0;
    --p_;
    uint32_t unit;
    if (!code_unit(p_, end_, unit)) return false;
    p_ += 6;
    if ((unit >> 11) != (0xD800 >> 11)) return true;
    uint32_t low;
    if (unit < 0xDC00 && code_unit(p_, end_, low) && (low >> 10) == (0xDC00 >> 10))
      p_ += 6;
    else
      value.lone_surrogate = true;
    return true;
  }

  // The UTF-16 code unit of an escape \uXXXX at p.
  static bool code_unit(const uint8_t* p, const uint8_t* end, uint32_t& unit) {
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u') return false;
    const char* const digits = reinterpret_cast<const char*>(p) + 2;
    const auto [rest, error] = std::from_chars(digits, digits + 4, unit, 16);
    return error == std::errc() && rest == digits + 4;
  }

  const uint8_t* p_;
  const uint8_t* end_;
  std::vector<size_t>& keys_;  // hashes of the keys of the objects around this place
  size_t level_ = 0;           // brackets around this place
};

}  // namespace bpe
