// A strict reader of JSON that gives up easily: it accepts a text only where Python's json.loads
// reads it the same way, and leaves every other one, good or bad, to be judged there. So it needs
// no error messages, and what is exotic (an escaped key, a duplicate one, NaN) needs no code.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>
#include <system_error>
#include <vector>

#include "text/utf8.h"

namespace bpe {

class JsonReader {
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
    // (The result is never longer than the value was.)
    void append_to(std::vector<uint8_t>& out) const {
      for (const uint8_t* p = begin; p < end;) {
        const void* found = escaped ? std::memchr(p, '\\', static_cast<size_t>(end - p)) : nullptr;
        const uint8_t* stop = found ? static_cast<const uint8_t*>(found) : end;
        out.insert(out.end(), p, stop);
        if (stop == end) return;
        p = stop + 2;
        if (stop[1] != 'u') {
          constexpr std::string_view kNames = "bfnrt", kValues = "\b\f\n\r\t";
          const size_t name = kNames.find(static_cast<char>(stop[1]));
          out.push_back(name == kNames.npos ? stop[1] : static_cast<uint8_t>(kValues[name]));
          continue;
        }
        uint32_t unit = 0, low = 0;
        code_unit(stop, end, unit);
        p = stop + 6;
        if ((unit >> 10) == (0xD800 >> 10) && code_unit(p, end, low)) {
          unit = 0x10000 + ((unit & 0x3FF) << 10 | (low & 0x3FF));
          p += 6;
        }
        std::array<uint8_t, 4> bytes;
        out.insert(out.end(), bytes.data(), write_utf8(unit, bytes.data()));
      }
    }
  };
  static constexpr size_t kMaxDepth = 200;

  // `keys` is memory to work in.
  JsonReader(const uint8_t* begin, const uint8_t* end, std::vector<size_t>& keys)
      : p_(begin), end_(end), keys_(keys) {
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

  // The object that begins here; member(key) reads each value.
  template <typename Member>
  bool object(Member member) {
    const size_t first_key = keys_.size();
    Value name;
    return items('{', '}', [&] { return key(name) && colon() && member(name.chars()); }) &&
           distinct_keys(first_key);
  }

  bool value(Value& value) {
    if (p_ == end_) return false;
    if (*p_ != '{' && *p_ != '[') return scalar(value);
    value.kind = Kind::other;
    const auto ignored = [this] {
      Value inside;
      return this->value(inside);
    };
    return *p_ == '[' ? items('[', ']', ignored)
                      : object([&](std::string_view) { return ignored(); });
  }

  bool scalar(Value& value) {
    value.kind = Kind::other;
    switch (*p_) {
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

  // A key without escapes, whose hash is kept until its object ends.
  bool key(Value& key) {
    if (!string(key) || key.escaped) return false;
    keys_.push_back(std::hash<std::string_view>{}(key.chars()));
    return true;
  }

  bool colon() {
    skip_space();
    if (!take(':')) return false;
    skip_space();
    return true;
  }

  // Whether the keys of an object that ends, from number `first` on, differ for sure; forgets them.
  bool distinct_keys(size_t first) {
    const auto begin = keys_.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(begin, keys_.end());
    const bool distinct = std::adjacent_find(begin, keys_.end()) == keys_.end();
    keys_.erase(begin, keys_.end());
    return distinct;
  }

  bool digits() {
    const uint8_t* first = p_;
    while (p_ < end_ && *p_ >= '0' && *p_ <= '9') ++p_;
    return p_ > first;
  }

  bool number(Value& value) {
    value.kind = Kind::integer;
    value.begin = p_;
    take('-');
    if (!take('0') && !digits()) return false;
    value.end = p_;
    if (take('.')) {
      value.kind = Kind::other;
      if (!digits()) return false;
    }
    if (take('e') || take('E')) {
      value.kind = Kind::other;
      if (!take('+')) take('-');
      if (!digits()) return false;
    }
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

  // Passes over eight bytes at a time while none of them is a quote, a backslash, a control
  // character or outside ASCII.
  void skip_plain() {
    constexpr uint64_t ones = 0x0101010101010101, highs = ones << 7;
    const auto has_zero = [](uint64_t word) { return (word - ones) & ~word & highs; };
    uint64_t word;
    while (end_ - p_ >= 8) {
      std::memcpy(&word, p_, 8);
      const uint64_t control = (word - ones * 0x20) & ~word & highs;
      if ((word & highs) | control | has_zero(word ^ ones * '"') | has_zero(word ^ ones * '\\'))
        return;
      p_ += 8;
    }
  }

  bool escape(Value& value) {
    ++p_;
    if (p_ == end_) return false;
    if (*p_ != 'u') return std::strchr("\"\\/bfnrt", *p_) != nullptr && *p_++ != 0;
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
