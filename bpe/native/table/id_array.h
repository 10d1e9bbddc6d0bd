// Rows of token ids, as encoding makes them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "table/zeroed_array.h"

namespace bpe {

// A growing array of ids that a caller may write into past its end, and that leaves unused memory
// behind when it is done. (std::vector can do neither.)
class IdArray {
 public:
  // Makes room for the most ids that may come, if the system gives it. What is not written to is
  // never touched and costs nothing; huge pages that are moved are split, and cost much.
  void expect(size_t most) {
    if (most > capacity_) static_cast<void>(try_resize(most));
  }
  // Where the next id goes; there is room for `count` of them.
  uint32_t* reserve(size_t count) {
    if (capacity_ - size_ < count) grow(size_ + count);
    return data_.get() + size_;
  }
  void advance(size_t count) { size_ += count; }
  void push_back(uint32_t id) {
    *reserve(1) = id;
    ++size_;
  }
  void truncate(size_t size) { size_ = size; }
  const uint32_t* last(size_t count) const { return data_.get() + size_ - count; }

  size_t size() const { return size_; }
  std::shared_ptr<uint32_t[]> finish() {
    resize(std::max<size_t>(size_, 1));
    return std::shared_ptr<uint32_t[]>(data_.release(), std::free);
  }
  // The same of ids that fit 16 bits, written over what they were: no memory is touched anew.
  std::shared_ptr<uint16_t[]> finish_narrow() {
    constexpr size_t kBlock = 64;
    uint32_t wide[kBlock];
    uint16_t narrow[kBlock];
    auto* const to = reinterpret_cast<unsigned char*>(data_.get());
    for (size_t first = 0; first < size_; first += kBlock) {
      const size_t count = std::min(kBlock, size_ - first);
      std::memcpy(wide, to + first * sizeof(uint32_t), count * sizeof(uint32_t));
      for (size_t i = 0; i < count; ++i) narrow[i] = static_cast<uint16_t>(wide[i]);
      std::memcpy(to + first * sizeof(uint16_t), narrow, count * sizeof(uint16_t));
    }
    resize(std::max<size_t>((size_ + 1) / 2, 1));
    return std::shared_ptr<uint16_t[]>(reinterpret_cast<uint16_t*>(data_.release()), std::free);
  }

 private:
  struct Free {
    void operator()(uint32_t* p) const { std::free(p); }
  };

  void grow(size_t least) { resize(std::max(least, capacity_ + capacity_ / 2 + 64)); }
  void resize(size_t capacity) {
    if (!try_resize(capacity)) throw std::bad_alloc();
  }
  bool try_resize(size_t capacity) {
    void* moved = std::realloc(data_.get(), capacity * sizeof(uint32_t));
    if (!moved) return false;
    static_cast<void>(data_.release());
    data_.reset(static_cast<uint32_t*>(moved));
    capacity_ = capacity;
    advise_huge_pages(moved, capacity * sizeof(uint32_t));
    return true;
  }

  std::unique_ptr<uint32_t[], Free> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// What no token stands for, and no unknown token either: it ends the row that holds it.
struct Unencodable {
  std::string text;  // a character, a malformed byte or a whole pre-token
};

// How pre-tokens became ids: those that were asked of the cache, and those of them that it did not
// know. What is encoded whole, without being asked for, is in neither; with dropout all are misses.
struct CacheUse {
  size_t asked = 0;
  size_t misses = 0;
};

struct EncodedRows {
  IdArray ids;
  std::vector<int64_t> offsets{0};  // row i: ids [offsets[i], offsets[i + 1])
  std::vector<std::pair<int64_t, Unencodable>> unencodable;  // rows without ids, ascending
  CacheUse cache_use;

  // Adds a row of what `encode` appends to the ids.
  template <typename Encode>
  void add(Encode encode) {
    try {
      encode();
    } catch (Unencodable& found) {
      ids.truncate(static_cast<size_t>(offsets.back()));
      unencodable.emplace_back(static_cast<int64_t>(offsets.size()) - 1, std::move(found));
    }
    offsets.push_back(static_cast<int64_t>(ids.size()));
  }
};

}  // namespace bpe
