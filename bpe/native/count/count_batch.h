// Keys on their way into a table of counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "count/count_table.h"

namespace bpe {

// While a batch is gathered, its entries come from memory. Keys stay where they are until flush(),
// and bytes after them up to `readable` may be read.
template <bool Ordered>
class CountBatch {
 public:
  Place place{-1, 0};  // of the next key

  CountBatch(CountTable& table, const uint8_t* readable) : table_(table), readable_(readable) {}

  [[gnu::always_inline]] void operator()(const uint8_t* begin, const uint8_t* end) {
    keys_[size_] = table_.make_key(begin, end, readable_);
    table_.prefetch(keys_[size_]);
    if constexpr (Ordered) places_[size_] = place;
    ++place.position;
    if (++size_ == kSize) flush();
  }

  [[gnu::noinline]] void flush() {
    for (size_t i = 0; i < size_; ++i) table_.add<Ordered>(keys_[i], places_[Ordered ? i : 0]);
    size_ = 0;
  }

 private:
  static constexpr size_t kSize = 64;

  CountTable& table_;
  const uint8_t* const readable_;
  size_t size_ = 0;
  std::array<CountTable::Key, kSize> keys_;
  std::array<Place, Ordered ? kSize : 1> places_{};
};

}  // namespace bpe
