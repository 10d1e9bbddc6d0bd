// Pieces of texts that were cut elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace bpe {

// pieces: three numbers each, of which the first two are begin and end in the data. row_ends: for
// each row the number of pieces up to and including it. Throws std::invalid_argument where a piece
// is outside the data, or rows do not share out the pieces.
inline void check_pieces(Bytes data, std::span<const int64_t> pieces,
                         std::span<const int64_t> row_ends) {
  if (pieces.size() % 3 != 0) throw std::invalid_argument("pieces are not of 3 numbers each");
  const size_t count = pieces.size() / 3;
  for (size_t piece = 0; piece < count; ++piece) {
    const int64_t begin = pieces[3 * piece], end = pieces[3 * piece + 1];
    if (begin < 0 || end < begin || static_cast<uint64_t>(end) > data.size())
      throw std::invalid_argument("piece " + std::to_string(piece) + " lies outside the data");
  }
  int64_t last = 0;
  for (const int64_t row_end : row_ends) {
    if (row_end < last || static_cast<uint64_t>(row_end) > count)
      throw std::invalid_argument("row_ends do not ascend within the pieces");
    last = row_end;
  }
  if (static_cast<uint64_t>(last) != count)
    throw std::invalid_argument("pieces are left over after the last row");
}

}  // namespace bpe
