// Memory that one part of the core allocates and another reads in place, whatever filled it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "table/bytes.h"

namespace bpe {

// Strings of bytes one after the other: string i is data[offsets[i], offsets[i + 1]).
struct ByteStrings {
  std::vector<uint8_t> data;
  std::vector<int64_t> offsets{0};

  size_t size() const { return offsets.size() - 1; }
  Bytes operator[](size_t i) const {
    return {data.data() + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i])};
  }

  void add(Bytes string) {
    data.insert(data.end(), string.begin(), string.end());
    end();
  }
  // Ends a string, whose bytes are in the data.
  void end() { offsets.push_back(static_cast<int64_t>(data.size())); }
};

// A byte range that keeps its memory alive, whatever element type filled it.
class Buffer {
 public:
  template <typename T>
  explicit Buffer(std::vector<T> values)
      : Buffer(std::make_shared<const std::vector<T>>(std::move(values))) {}

  // The values are in memory that `owner` keeps alive.
  template <typename T>
  Buffer(std::shared_ptr<const void> owner, const std::vector<T>& values)
      : owner_(std::move(owner)), size_(values.size() * sizeof(T)) {
    // Arrow aborts on a data buffer without an address, so an empty one has one too.
    alignas(std::max_align_t) static constexpr uint8_t kNothing[1] = {};
    data_ = size_ > 0 ? reinterpret_cast<const uint8_t*>(values.data()) : kNothing;
  }

  // The same of [data, data + size). The core does not look at it again: who gets it may change it.
  Buffer(std::shared_ptr<const void> owner, uint8_t* data, size_t size)
      : owner_(std::move(owner)), data_(data), size_(size), writable_(true) {}

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  bool writable() const { return writable_; }

 private:
  template <typename T>
  explicit Buffer(const std::shared_ptr<const std::vector<T>>& owner) : Buffer(owner, *owner) {}

  std::shared_ptr<const void> owner_;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  bool writable_ = false;
};

}  // namespace bpe
