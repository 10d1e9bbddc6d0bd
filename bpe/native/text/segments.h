// Segments of texts, which were cut elsewhere (bpe/segments.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace bpe {

// What a segment is instead of a token, which is given by its id.
inline constexpr int64_t kText = -1;
inline constexpr int64_t kNeverSplit = -2;  // a pre-token in which nothing merges

// row_ends: for each row the number of segments up to and including it. Throws
// std::invalid_argument where rows do not share out the segments.
inline void check_row_ends(std::span<const int64_t> row_ends, size_t segments) {
  int64_t last = 0;
  for (const int64_t row_end : row_ends) {
    if (row_end < last || static_cast<uint64_t>(row_end) > segments)
      throw std::invalid_argument("row_ends do not ascend within the segments");
    last = row_end;
  }
  if (static_cast<uint64_t>(last) != segments)
    throw std::invalid_argument("segments are left over after the last row");
}

}  // namespace bpe
