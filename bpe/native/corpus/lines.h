// Cuts a block of bytes into lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "table/buffer.h"

namespace bpe {

// Rows of bytes, and where each began.
struct Lines {
  ByteStrings text;
  std::vector<int64_t> places;
};

// Calls line(begin, end) for each line of a block, without its \n; a last line may lack it.
template <class F>
void for_each_line(Bytes block, F&& line) {
  const uint8_t* const end = block.data() + block.size();
  for (const uint8_t* p = block.data(); p < end;) {
    const void* found = std::memchr(p, '\n', static_cast<size_t>(end - p));
    const uint8_t* stop = found ? static_cast<const uint8_t*>(found) : end;
    line(p, stop);
    p = stop + 1;
  }
}

// Lines without their ends (\n, and one \r before it). The first byte of data is at `place`.
inline Lines split_lines(Bytes data, int64_t place) {
  Lines lines;
  lines.text.data.reserve(data.size());
  for_each_line(data, [&](const uint8_t* p, const uint8_t* stop) {
    lines.places.push_back(place + (p - data.data()));
    if (stop > p && stop[-1] == '\r') --stop;
    lines.text.add({p, stop});
  });
  return lines;
}

}  // namespace bpe
