// A column of texts in Arrow's layout: one block of bytes and rows + 1 offsets into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "table/bytes.h"

namespace bpe {

// Rows [first, first + rows) of an Arrow (large_)string or (large_)binary array without nulls.
// Offsets are checked before use, so a hostile array cannot make us read outside its data.
class TextColumn {
 public:
  // `offsets` holds numbers of 4 or 8 bytes, which need not be aligned. `owner` keeps the memory.
  TextColumn(Bytes data, Bytes offsets, int offset_width, size_t first, size_t rows,
             std::shared_ptr<const void> owner = nullptr)
      : data_(data),
        offsets_(offsets),
        wide_(offset_width == 8),
        first_(first),
        rows_(rows),
        owner_(std::move(owner)) {
    if (offset_width != 4 && offset_width != 8)
      throw std::invalid_argument("offset_width must be 4 or 8");
    const size_t stored = offsets_.size() / static_cast<size_t>(offset_width);
    if (rows > 0 && (first >= stored || rows > stored - first - 1))
      throw std::invalid_argument("the column has fewer offsets than rows + 1");
    for (size_t row = 0; row < rows; ++row) {
      const int64_t begin = offset(row), end = offset(row + 1);
      if (begin < 0 || end < begin || static_cast<uint64_t>(end) > data_.size())
        throw std::invalid_argument("row " + std::to_string(row) + " lies outside the data");
    }
  }

  size_t rows() const { return rows_; }

  // Of all its rows together.
  size_t bytes() const { return rows_ == 0 ? 0 : static_cast<size_t>(offset(rows_) - offset(0)); }

  // The end of the bytes that may be read, also after a row.
  const uint8_t* readable() const { return data_.data() + data_.size(); }

  Bytes operator[](size_t row) const {
    const int64_t begin = offset(row);
    return {data_.data() + begin, static_cast<size_t>(offset(row + 1) - begin)};
  }

 private:
  int64_t offset(size_t row) const {
    return wide_ ? number<int64_t>(first_ + row) : number<int32_t>(first_ + row);
  }
  template <typename T>
  T number(size_t i) const {
    T value;
    std::memcpy(&value, offsets_.data() + i * sizeof value, sizeof value);
    return value;
  }

  Bytes data_;
  Bytes offsets_;
  bool wide_;
  size_t first_;
  size_t rows_;
  std::shared_ptr<const void> owner_;
};

}  // namespace bpe
