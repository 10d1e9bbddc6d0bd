// Memory that C++ allocates and Python reads in place: pyarrow wraps a Buffer without a copy.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace bpe {

namespace py = pybind11;

// An immutable byte range that owns its memory, whatever element type filled it.
class Buffer {
 public:
  template <typename T>
  explicit Buffer(std::vector<T> values) {
    auto owner = std::make_shared<std::vector<T>>(std::move(values));
    size_ = owner->size() * sizeof(T);
    // Arrow aborts on a data buffer without an address, so an empty one has one too.
    alignas(std::max_align_t) static constexpr uint8_t kNothing[1] = {};
    data_ = size_ > 0 ? reinterpret_cast<const uint8_t*>(owner->data()) : kNothing;
    owner_ = std::move(owner);
  }

  // [data, data + size) lies in memory that `owner` keeps alive.
  Buffer(std::shared_ptr<void> owner, const uint8_t* data, size_t size)
      : owner_(std::move(owner)), data_(data), size_(size) {}

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::shared_ptr<void> owner_;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// A contiguous buffer lent by Python (bytes, memoryview, pyarrow.Buffer, Buffer) seen as T[].
// Holds the Python object, so the memory stays valid while the GIL is released.
template <typename T>
class View {
 public:
  explicit View(const py::buffer& object) : info_(object.request()) {
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

}  // namespace bpe
