// Memory that one part of the core allocates and another reads in place, whatever filled it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace bpe {

// Strings of bytes one after the other: string i is data[offsets[i], offsets[i + 1]).
struct ByteStrings {
  std::vector<uint8_t> data;
  std::vector<int64_t> offsets{0};

  // Ends a string, whose bytes are in the data.
  void end() { offsets.push_back(static_cast<int64_t>(data.size())); }
};

// A byte range that owns its memory, whatever element type filled it.
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

  // [data, data + size) is in memory that `owner` keeps alive. The core does not look at it
  // again: who gets it may change it.
  Buffer(std::shared_ptr<void> owner, uint8_t* data, size_t size)
      : owner_(std::move(owner)), data_(data), size_(size), writable_(true) {}

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  bool writable() const { return writable_; }

 private:
  std::shared_ptr<void> owner_;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  bool writable_ = false;
};

}  // namespace bpe
