// Buffers that Python lends: read in place while the GIL is released.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "text/text_column.h"

namespace bpe {

namespace py = pybind11;

// A contiguous buffer lent by Python (bytes, memoryview, pyarrow.Buffer, Buffer) seen as T[].
// Holds the Python object, so the memory stays valid while the GIL is released.
template <typename T>
class View {
 public:
  explicit View(const std::optional<py::buffer>& object) {  // empty where there is none
    if (!object) return;
    info_ = object->request();
    const size_t bytes = static_cast<size_t>(info_.size) * static_cast<size_t>(info_.itemsize);
    if (bytes % sizeof(T) != 0)
      throw std::invalid_argument("buffer size is not a whole number of elements");
    if (info_.ndim > 1) throw std::invalid_argument("buffer has more than one dimension");
    if (info_.ndim == 1 && info_.size > 1 && info_.strides[0] != info_.itemsize)
      throw std::invalid_argument("buffer is not contiguous");
    size_ = bytes / sizeof(T);
    if (size_ > 0 && reinterpret_cast<uintptr_t>(info_.ptr) % alignof(T) != 0) {
      copy_.resize(size_);  // unaligned (a slice of bytes): reading it as T would be undefined
      std::memcpy(copy_.data(), info_.ptr, bytes);
    }
  }

  const T* data() const { return copy_.empty() ? static_cast<const T*>(info_.ptr) : copy_.data(); }
  size_t size() const { return size_; }
  const T& operator[](size_t i) const { return data()[i]; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

 private:
  py::buffer_info info_;
  std::vector<T> copy_;
  size_t size_ = 0;
};

template <typename T>
std::span<const T> span_of(const View<T>& view) {
  return {view.data(), view.size()};
}

// A column of texts that keeps the buffers it is in.
class LentColumn : public TextColumn {
 public:
  LentColumn(const py::buffer& data, const py::buffer& offsets, int offset_width, size_t first,
             size_t rows)
      : LentColumn(View<uint8_t>(data), View<uint8_t>(offsets), offset_width, first, rows) {}

 private:
  // Bytes are never copied by a View, so they stay where they are when it moves.
  LentColumn(View<uint8_t> data, View<uint8_t> offsets, int offset_width, size_t first, size_t rows)
      : TextColumn(span_of(data), span_of(offsets), offset_width, first, rows),
        data_(std::move(data)),
        offsets_(std::move(offsets)) {}

  View<uint8_t> data_;
  View<uint8_t> offsets_;
};

}  // namespace bpe
