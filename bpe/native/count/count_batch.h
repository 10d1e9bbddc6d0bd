// Keys on their way into a table of counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "count/count_table.h"

namespace bpe {

// While a batch is gathered, its entries come from memory. Keys stay where they are until flush().
template <bool Ordered>
class CountBatch {
 public:
  explicit CountBatch(CountTable& table) : table_(table) {}

  [[gnu::always_inline]] void push(const uint8_t* begin, const uint8_t* end,
                                   const uint8_t* readable, Place place) {
    keys_[size_] = table_.make_key(begin, end, readable);
    table_.prefetch(keys_[size_]);
    if constexpr (Ordered) places_[size_] = place;
    if (++size_ == kSize) flush();
  }

  void flush() {
    for (size_t i = 0; i < size_; ++i) table_.add<Ordered>(keys_[i], places_[Ordered ? i : 0]);
    size_ = 0;
  }

 private:
  static constexpr size_t kSize = 64;

  CountTable& table_;
  size_t size_ = 0;
  std::array<CountTable::Key, kSize> keys_;
  std::array<Place, Ordered ? kSize : 1> places_{};
};

}  // namespace bpe
