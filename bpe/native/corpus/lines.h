// Cuts a block of bytes into lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "table/buffer.h"

namespace bpe {

// Rows of bytes, and where each began.
struct Lines {
  ByteStrings text;
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
  lines.text.data.reserve(data.size());
  const auto* begin = reinterpret_cast<const uint8_t*>(data.data());
  for_each_line(begin, begin + data.size(), [&](const uint8_t* p, const uint8_t* stop) {
    lines.places.push_back(place + (p - begin));
    if (stop > p && stop[-1] == '\r') --stop;
    lines.text.data.insert(lines.text.data.end(), p, stop);
    lines.text.end();
  });
  return lines;
}

}  // namespace bpe
