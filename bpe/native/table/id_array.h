// Token ids of 16 or 32 bits, as encoding makes them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "table/buffer.h"
#include "table/zeroed_array.h"

namespace bpe {

// The memory of the last large array that was given back, for the next one: pages that are fresh
// cost a tenth of encoding, and as much as all of it where a hypervisor takes free ones away.
// Meanwhile the system may take them, too.
class KeptMemory {
 public:
  static constexpr size_t kLeast = size_t{8} << 20;

  // Memory of at least so many bytes and at most twice as many, and its size; or null.
  static std::pair<uint8_t*, size_t> take(size_t least) {
    uint8_t* const memory = least < kLeast ? nullptr : kept_.exchange(nullptr);
    size_t bytes = 0;
    if (memory) std::memcpy(&bytes, memory, sizeof bytes);
    if (bytes >= least && bytes / 2 <= least) return {memory, bytes};
    std::free(memory);
    return {nullptr, 0};
  }

  // memory: from std::realloc; as much of it as was never written to costs nothing.
  static void give(uint8_t* memory, size_t bytes) {
    if (bytes >= kLeast) {
      std::memcpy(memory, &bytes, sizeof bytes);
      let_go(memory + sizeof bytes, bytes - sizeof bytes);
      memory = kept_.exchange(memory);
    }
    std::free(memory);
  }

 private:
  inline static std::atomic<uint8_t*> kept_ = nullptr;
};

// A growing array that a caller may write into past its end, and that gives unused memory back
// when it is done. (std::vector can do neither.)
class IdArray {
 public:
  // narrow: ids of 16 bits. Makes room for the most ids that may come, if the system gives it: what
  // is not written to is never touched and costs nothing; huge pages that are moved are split, and
  // cost much.
  IdArray(bool narrow, size_t most) : width_(narrow ? sizeof(uint16_t) : sizeof(uint32_t)) {
    const auto [kept, bytes] = KeptMemory::take(most * width_);
    data_.reset(kept);
    if (kept)
      capacity_ = bytes / width_;
    else
      static_cast<void>(try_resize(most));
  }

  bool is_narrow() const { return width_ == sizeof(uint16_t); }
  size_t size() const { return size_; }

  // Where the next id goes; there is room for `count` of them. Id: of the array's width.
  template <typename Id>
  Id* reserve(size_t count) {
    if (capacity_ - size_ < count) grow(size_ + count);
    return reinterpret_cast<Id*>(data_.get()) + size_;
  }
  void advance(size_t count) { size_ += count; }

  void append(std::span<const uint32_t> ids) {
    if (is_narrow())
      std::ranges::copy(ids, reserve<uint16_t>(ids.size()));
    else
      std::ranges::copy(ids, reserve<uint32_t>(ids.size()));
    size_ += ids.size();
  }
  void truncate(size_t size) { size_ = size; }

  // All ids of an array that is not narrow.
  std::span<uint32_t> wide() { return {reinterpret_cast<uint32_t*>(data_.get()), size_}; }

  // Its ids; the array is empty afterwards.
  Buffer finish() {
    const size_t bytes = size_ * width_;
    if (bytes < KeptMemory::kLeast) resize(std::max<size_t>(size_, 1));
    uint8_t* const data = data_.get();
    std::shared_ptr<uint8_t> owner(data_.release(), [kept = capacity_ * width_](uint8_t* memory) {
      KeptMemory::give(memory, kept);
    });
    size_ = capacity_ = 0;
    return {std::move(owner), data, bytes};
  }

 private:
  struct Free {
    void operator()(uint8_t* p) const { std::free(p); }
  };

  void grow(size_t least) { resize(std::max(least, capacity_ + capacity_ / 2 + 64)); }
  void resize(size_t capacity) {
    if (!try_resize(capacity)) throw std::bad_alloc();
  }
  bool try_resize(size_t capacity) {
    void* const moved = std::realloc(data_.get(), capacity * width_);
    if (!moved) return false;
    static_cast<void>(data_.release());
    data_.reset(static_cast<uint8_t*>(moved));
    capacity_ = capacity;
    advise_huge_pages(moved, capacity * width_);
    return true;
  }

  std::unique_ptr<uint8_t[], Free> data_;
  size_t width_;         // bytes of an id
  size_t capacity_ = 0;  // ids
  size_t size_ = 0;
};

}  // namespace bpe
