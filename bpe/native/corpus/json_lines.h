// Takes two fields out of each line of a JSON lines file.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "corpus/lines.h"
#include "json/reader.h"
#include "table/buffer.h"

namespace bpe {

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
class JsonLine : public JsonReader {
 public:
  JsonLine(Bytes line, const FieldName& text_field, const FieldName& id_field,
           std::vector<size_t>& keys)
      : JsonReader(line, keys), names_{&text_field, &id_field} {}

  // Whether the line is an object that this reader understands; then text and id are set.
  bool read() {
    if (!members(3) || !blank()) return false;
    text = whole_[0].kind != Kind::absent ? whole_[0] : inner_[0];
    id = whole_[1].kind != Kind::absent ? whole_[1] : inner_[1];
    return true;
  }

  Value text, id;

 private:
  // The members of an object in objects; `paths`: the fields, as bits, that may be in it.
  bool members(unsigned paths) {
    const size_t level = level_;
    return object([&](std::string_view field) {
      unsigned inside = 0, last = 0;  // the paths that lead on, and those that end here
      for (unsigned f = 0; paths >> f != 0; ++f) {
        const std::vector<std::string_view>& parts = names_[f]->parts;
        if ((paths >> f & 1) == 0 || level >= parts.size() || parts[level] != field) continue;
        inner_[f] = Value();
        (parts.size() == level + 1 ? last : inside) |= 1u << f;
      }
      Value value;
      if (inside != 0 && p_ < end_ && *p_ == '{') {
        value.kind = Kind::other;
        if (!members(inside)) return false;
      } else if (!this->value(value)) {
        return false;
      }
      for (unsigned f = 0; f < names_.size(); ++f) {
        if (level == 0 && field == names_[f]->whole) whole_[f] = value;
        if (last >> f & 1) inner_[f] = value;
      }
      return true;
    });
  }

  std::array<const FieldName*, 2> names_;  // of the text, and of the id
  std::array<Value, 2> whole_, inner_;     // found by the whole name, and where its dots lead
};

// The records of a block of JSON lines, one row each; lines of white space are no records.
struct JsonLines {
  ByteStrings text;
  std::vector<uint8_t> ids;
  std::vector<int32_t> id_offsets{0};
  std::vector<uint8_t> has_id;  // a bitmap, lowest bit first
  std::vector<int64_t> places;
  std::vector<int64_t> undecided;  // (row, begin, end): its text is empty, to be judged elsewhere
};

// The first byte of data is at `place`. A row whose id is absent or null has none; with
// `id_required`, and where its id is no string or integer, it is undecided. At most 2^31 - 1 bytes
// of data.
inline JsonLines read_json_lines(Bytes data, int64_t place, std::string_view text_field,
                                 std::string_view id_field, bool id_required) {
  if (data.size() > INT32_MAX) throw std::invalid_argument("more than 2^31 - 1 bytes of lines");
  using Kind = JsonLine::Kind;
  JsonLines rows;
  rows.text.data.reserve(data.size());
  const FieldName text_name(text_field), id_name(id_field);
  std::vector<size_t> keys;
  const uint8_t* const begin = data.data();
  for_each_line(data, [&](const uint8_t* p, const uint8_t* stop) {
    JsonLine line({p, stop}, text_name, id_name, keys);
    if (line.blank()) return;
    const size_t row = rows.places.size();
    rows.places.push_back(place + (p - begin));
    if (row % 8 == 0) rows.has_id.push_back(0);
    const bool read = line.read();
    const bool has_id = line.id.kind == Kind::string || line.id.kind == Kind::integer;
    const bool no_id = line.id.kind == Kind::absent || line.id.kind == Kind::null;
    if (read && line.text.kind == Kind::string && !line.text.lone_surrogate &&
        !(has_id && line.id.lone_surrogate) && (has_id || (no_id && !id_required))) {
      line.text.append_to(rows.text.data);
      if (has_id) {
        rows.has_id.back() |= static_cast<uint8_t>(1u << row % 8);
        const bool minus_zero = line.id.kind == Kind::integer && line.id.end - line.id.begin == 2 &&
                                line.id.begin[0] == '-' && line.id.begin[1] == '0';
        if (minus_zero) ++line.id.begin;
        line.id.append_to(rows.ids);
      }
    } else {
      rows.undecided.insert(rows.undecided.end(),
                            {static_cast<int64_t>(row), p - begin, stop - begin});
    }
    rows.text.end();
    rows.id_offsets.push_back(static_cast<int32_t>(rows.ids.size()));
  });
  return rows;
}

}  // namespace bpe
