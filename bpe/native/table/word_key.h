// A string as the key of a table in memory: nearly all pre-tokens fit in the key itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "table/hash.h"

namespace bpe {

// A string of up to kMaxShort bytes is its own key: its bytes in little-endian order, zeros after
// them, its size in the last byte. A longer one is known by its address; its size is `high`, so
// that the last byte is 0. The upper half of the last byte is 0 in both.
struct WordKey {
  static constexpr size_t kMaxShort = 15;

  uint64_t low, high, hash;

  // `readable` is the end of the bytes that may be read from the string on.
  //
  // Always inlined, as is what passes a key on: built in registers, each of its words is stored
  // once and read as it was written. Out of line it is written as words of 8 bytes and copied at
  // once by a load of 16, which has to wait until both stores are done: half of the time of
  // encoding, where a compiler chose so (the rows count and encode-r50k-en show that).
  [[gnu::always_inline]] WordKey(const uint8_t* begin, size_t size, const uint8_t* readable,
                                 const HashSeeds& seeds) {
    if (size > kMaxShort) [[unlikely]] {
      low = reinterpret_cast<uint64_t>(begin);
      high = size;
      hash = hash_long(begin, size, seeds);
      return;
    }
    if (readable - begin >= 16) [[likely]] {
      low = load_le64(begin) & load_le64(kKeep.data() + 16 - size);
      high = load_le64(begin + 8) & load_le64(kKeep.data() + 24 - size);
    } else {
      uint8_t padded[16] = {};
      std::memcpy(padded, begin, size);
      low = load_le64(padded);
      high = load_le64(padded + 8);
    }
    high |= uint64_t{size} << 56;
    hash = hash_words(low, high, seeds);
  }
  WordKey() = default;

  static bool is_long(uint64_t high) { return high >> 56 == 0; }
  bool is_long() const { return is_long(high); }
  size_t size() const { return is_long() ? high : high >> 56; }
  // Of a long string.
  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(low); }

 private:
  // 16 bytes of ones, then zeros: from 16 - size on, as many ones as the string has bytes.
  static constexpr std::array<uint8_t, 32> kKeep = [] {
    std::array<uint8_t, 32> keep{};
    for (size_t i = 0; i < 16; ++i) keep[i] = 0xFF;
    return keep;
  }();
};

}  // namespace bpe
