// Buffers that Python lends, as arguments of functions that run without the GIL; and what comes
// back.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "table/buffer.h"

namespace bpe {

namespace py = pybind11;

// A contiguous buffer lent by Python (bytes, memoryview, pyarrow.Buffer, Buffer) seen as T[].
// Holds the Python object, so the memory stays valid while the GIL is released.
template <typename T>
class View {
 public:
  View() = default;  // empty
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

  std::span<const T> span() const {
    return {copy_.empty() ? static_cast<const T*>(info_.ptr) : copy_.data(), size_};
  }

 private:
  py::buffer_info info_;
  std::vector<T> copy_;
  size_t size_ = 0;
};

// What of(row) makes of each row.
template <typename Row, typename Of>
py::list list_of(const std::vector<Row>& rows, Of of) {
  py::list list;
  for (const Row& row : rows) list.append(of(row));
  return list;
}

}  // namespace bpe

namespace pybind11::detail {

// A function with an argument of this type takes a buffer, and holds it while it runs. None is
// empty.
template <typename T>
struct type_caster<std::span<const T>> {
  static constexpr auto name = const_name("Buffer");
  template <typename>
  using cast_op_type = std::span<const T>;

  bool load(handle object, bool) {
    if (isinstance<buffer>(object)) view_ = bpe::View<T>(reinterpret_borrow<buffer>(object));
    return isinstance<buffer>(object) || object.is_none();
  }
  operator std::span<const T>() const { return view_.span(); }

 private:
  bpe::View<T> view_;
};

// Strings are returned as two buffers: bytes and offsets.
template <>
struct type_caster<bpe::ByteStrings> {
  static constexpr auto name = const_name("tuple[Buffer, Buffer]");

  static handle cast(bpe::ByteStrings strings, return_value_policy, handle) {
    return make_tuple(bpe::Buffer(std::move(strings.data)), bpe::Buffer(std::move(strings.offsets)))
        .release();
  }
};

}  // namespace pybind11::detail
