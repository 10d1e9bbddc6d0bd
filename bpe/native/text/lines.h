// Cuts a block of bytes into lines, and takes two fields out of each line of a JSON lines file.
//
// The JSON reader is strict and gives up easily: it accepts a line only where Python's json.loads
// reads it the same way, and leaves every other line, good or bad, to be judged there. So it needs
// no error messages, and what is exotic (an escaped key, a duplicate one, half a surrogate pair,
// NaN) needs no code.
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

// Rows of bytes in Arrow's layout, and where each began.
struct Lines {
  std::vector<uint8_t> text;
  std::vector<int64_t> offsets{0};
  std::vector<int64_t> places;
};

// Calls line(begin, end) for each line of [p, end), without its \n; a last line may lack it.
template <class F>
void for_each_line(const uint8_t* p, const uint8_t* end, F&& line) {
  while (p < end) {
    const void* found = std::memchr(p, '\n', static_cast<size_t>(end - p));
    const uint8_t* stop = found ? static_cast<const uint8_t*>(found) : end;
    line(p, stop);
    p = stop + 1;
  }
}

// Lines without their ends (\n, and one \r before it). The first byte of data is at `place`.
inline Lines split_lines(std::string_view data, int64_t place) {
  Lines lines;
  lines.text.reserve(data.size());
  const auto* begin = reinterpret_cast<const uint8_t*>(data.data());
  for_each_line(begin, begin + data.size(), [&](const uint8_t* p, const uint8_t* stop) {
    lines.places.push_back(place + (p - begin));
    if (stop > p && stop[-1] == '\r') --stop;
    lines.text.insert(lines.text.end(), p, stop);
    lines.offsets.push_back(static_cast<int64_t>(lines.text.size()));
  });
  return lines;
}

// The UTF-16 code unit of an escape \uXXXX at p.
inline bool code_unit(const uint8_t* p, const uint8_t* end, uint32_t& unit) {
  if (end - p < 6 || p[0] != '\\' || p[1] != 'u') return false;
  const char* const digits = reinterpret_cast<const char*>(p) + 2;
  const auto [rest, error] = std::from_chars(digits, digits + 4, unit, 16);
  return error == std::errc() && rest == digits + 4;
}

// Appends what the inside of a JSON string stands for. Its escapes are valid, its surrogates
// paired. (The result is never longer than the string was.)
inline void append_unescaped(std::vector<uint8_t>& out, const uint8_t* p, const uint8_t* end) {
  while (p < end) {
    const void* found = std::memchr(p, '\\', static_cast<size_t>(end - p));
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

// The name of a field, and where its dots lead if no field has the whole name: objects in objects.
struct FieldName {
  std::string_view whole;
  std::vector<std::string_view> parts;  // none where there is no dot

  explicit FieldName(std::string_view name) : whole(name) {
    if (name.find('.') == std::string_view::npos) return;
    for (size_t begin = 0; begin <= name.size();) {
      const size_t end = std::min(name.find('.', begin), name.size());
      parts.push_back(name.substr(begin, end - begin));
      begin = end + 1;
    }
  }
};

// One line of JSON, read to its end without building anything but the two fields asked for.
class JsonLine {
 public:
  enum class Kind { absent, null, string, integer, other };
  struct Value {
    Kind kind = Kind::absent;
    const uint8_t* begin = nullptr;  // a string without its quotes, still escaped
    const uint8_t* end = nullptr;
    bool escaped = false;
    bool lone_surrogate = false;
  };
  static constexpr size_t kMaxDepth = 200;

  // `keys` is memory to work in, empty between lines.
  JsonLine(const uint8_t* begin, const uint8_t* end, const FieldName& text_field,
           const FieldName& id_field, std::vector<size_t>& keys)
      : p_(begin), end_(end), names_{&text_field, &id_field}, keys_(keys) {
    keys_.clear();
  }

  bool blank() {
    skip_space();
    return p_ == end_;
  }

  // Whether the line is an object that this reader understands; then text and id are set.
  bool read() {
    skip_space();
    if (!take('{')) return false;
    const unsigned paths =
        (names_[0]->parts.empty() ? 0u : 1u) | (names_[1]->parts.empty() ? 0u : 2u);
    if (!members(paths) || !blank()) return false;
    text = whole_[0].kind != Kind::absent ? whole_[0] : inner_[0];
    id = whole_[1].kind != Kind::absent ? whole_[1] : inner_[1];
    return true;
  }

  Value text, id;

 private:
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

  // The members of an object behind its brace; `paths`: the fields, as bits, that may be in it.
  bool members(unsigned paths) {
    const size_t level = level_++, first_key = keys_.size();
    if (level == kMaxDepth) return false;
    skip_space();
    if (!take('}')) {
      do {
        Value name, value;
        if (!key(name)) return false;
        const std::string_view field(reinterpret_cast<const char*>(name.begin),
                                     static_cast<size_t>(name.end - name.begin));
        unsigned inside = 0, last = 0;  // the paths that lead on, and those that end here
        for (unsigned f = 0; paths >> f != 0; ++f) {
          if ((paths >> f & 1) == 0 || names_[f]->parts[level] != field) continue;
          inner_[f] = Value();
          (names_[f]->parts.size() == level + 1 ? last : inside) |= 1u << f;
        }
        skip_space();
        if (inside != 0 && take('{')) {
          value.kind = Kind::other;
          if (!members(inside)) return false;
        } else if (!this->value(value)) {
          return false;
        }
        for (unsigned f = 0; f < names_.size(); ++f) {
          if (level == 0 && field == names_[f]->whole) whole_[f] = value;
          if (last >> f & 1) inner_[f] = value;
        }
        skip_space();
      } while (take(','));
      if (!take('}')) return false;
    }
    if (!distinct_keys(first_key)) return false;
    --level_;
    return true;
  }

  bool value(Value& value) {
    skip_space();
    if (p_ == end_) return false;
    if (*p_ != '{' && *p_ != '[') return scalar(value);
    value.kind = Kind::other;
    return nested();
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

  // An array or object, whatever is in it; without recursion, for a hostile line has no depth.
  bool nested() {
    std::array<uint8_t, kMaxDepth> closers;
    std::array<size_t, kMaxDepth> first_keys;
    size_t depth = 0;
    Value ignored;
    for (;;) {
      skip_space();
      if (p_ == end_) return false;
      if (*p_ == '{' || *p_ == '[') {
        if (depth + level_ == kMaxDepth) return false;
        const uint8_t closer = *p_++ == '{' ? '}' : ']';
        first_keys[depth] = keys_.size();
        closers[depth++] = closer;
        skip_space();
        if (p_ == end_) return false;
        if (*p_ != closer) {
          if (closer == '}' && !key(ignored)) return false;
          continue;
        }
      } else if (!scalar(ignored)) {
        return false;
      }
      for (;;) {  // behind a value, or before the end of an empty bracket
        skip_space();
        if (take(closers[depth - 1])) {
          if (!distinct_keys(first_keys[depth - 1])) return false;
          if (--depth == 0) return true;
        } else if (take(',')) {
          if (closers[depth - 1] == '}' && !key(ignored)) return false;
          break;
        } else {
          return false;
        }
      }
    }
  }

  // A key without escapes, whose hash is kept until its object ends.
  bool key(Value& key) {
    skip_space();
    if (!string(key) || key.escaped) return false;
    keys_.push_back(std::hash<std::string_view>{}(
        {reinterpret_cast<const char*>(key.begin), static_cast<size_t>(key.end - key.begin)}));
    skip_space();
    return take(':');
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

  const uint8_t* p_;
  const uint8_t* end_;
  std::array<const FieldName*, 2> names_;  // of the text, and of the id
  std::array<Value, 2> whole_, inner_;     // found by the whole name, and where its dots lead
  std::vector<size_t>& keys_;              // hashes of the keys of the objects around this place
  size_t level_ = 0;                       // objects around this place that are read by members
};

// The records of a block of JSON lines, one row each; lines of white space are no records.
struct JsonLines {
  std::vector<uint8_t> text;
  std::vector<int64_t> text_offsets{0};
  std::vector<uint8_t> ids;
  std::vector<int32_t> id_offsets{0};
  std::vector<uint8_t> has_id;  // a bitmap, lowest bit first
  std::vector<int64_t> places;
  std::vector<int64_t> undecided;  // (row, begin, end): its text is empty, to be judged elsewhere
};

// The first byte of data is at `place`. A row whose id is absent or null has none; with
// `id_required`, and where its id is no string or integer, it is undecided. At most 2^31 - 1 bytes
// of data.
inline JsonLines read_json_lines(std::string_view data, int64_t place, std::string_view text_field,
                                 std::string_view id_field, bool id_required) {
  using Kind = JsonLine::Kind;
  JsonLines rows;
  rows.text.reserve(data.size());
  const FieldName text_name(text_field), id_name(id_field);
  std::vector<size_t> keys;
  const auto* begin = reinterpret_cast<const uint8_t*>(data.data());
  const auto append = [](std::vector<uint8_t>& out, const JsonLine::Value& value) {
    if (value.escaped)
      append_unescaped(out, value.begin, value.end);
    else
      out.insert(out.end(), value.begin, value.end);
  };
  for_each_line(begin, begin + data.size(), [&](const uint8_t* p, const uint8_t* stop) {
    JsonLine line(p, stop, text_name, id_name, keys);
    if (line.blank()) return;
    const size_t row = rows.places.size();
    rows.places.push_back(place + (p - begin));
    if (row % 8 == 0) rows.has_id.push_back(0);
    const bool read = line.read();
    const bool has_id = line.id.kind == Kind::string || line.id.kind == Kind::integer;
    const bool no_id = line.id.kind == Kind::absent || line.id.kind == Kind::null;
    if (read && line.text.kind == Kind::string && !line.text.lone_surrogate &&
        !(has_id && line.id.lone_surrogate) && (has_id || (no_id && !id_required))) {
      append(rows.text, line.text);
      if (has_id) {
        rows.has_id.back() |= static_cast<uint8_t>(1u << row % 8);
        const bool minus_zero = line.id.kind == Kind::integer && line.id.end - line.id.begin == 2 &&
                                line.id.begin[0] == '-' && line.id.begin[1] == '0';
        if (minus_zero) ++line.id.begin;
        append(rows.ids, line.id);
      }
    } else {
      rows.undecided.insert(rows.undecided.end(),
                            {static_cast<int64_t>(row), p - begin, stop - begin});
    }
    rows.text_offsets.push_back(static_cast<int64_t>(rows.text.size()));
    rows.id_offsets.push_back(static_cast<int32_t>(rows.ids.size()));
  });
  return rows;
}

}  // namespace bpe
