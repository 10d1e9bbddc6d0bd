// Remembers how short pre-tokens encode: most words of a text were in it before.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "hash.h"

namespace bpe {

// Bounded: 2^17 sets of two 32-byte entries, a set to a cache line. A new entry takes the place of
// the older one of its set. Keys and ids lie in the entry, so a hit touches one line of memory.
class WordCache {
 public:
  static constexpr size_t kMaxBytes = 15;
  static constexpr size_t kMaxIds = 4;
  // What lookup() writes past the ids it found: make room for kMaxIds.
  static constexpr uint32_t kUnused = UINT32_MAX;

  // A word of 1 to kMaxBytes bytes in two registers; its length stands in the last byte.
  struct Key {
    uint64_t low, high;
    bool operator==(const Key&) const = default;
  };

  // Reads [word, word + size) and, where they lie before `readable`, bytes behind it.
  static Key key(const uint8_t* word, size_t size, const uint8_t* readable) {
    uint64_t low, high;
    if (static_cast<size_t>(readable - word) >= 16) {
      low = load_le64(word);
      high = load_le64(word + 8);
      if (size < 8) {
        low &= (uint64_t{1} << (8 * size)) - 1;
        high = 0;
      } else {
        high &= (uint64_t{1} << (8 * (size - 8))) - 1;
      }
    } else {
      uint8_t padded[16] = {};
      std::memcpy(padded, word, size);
      low = load_le64(padded);
      high = load_le64(padded + 8);
    }
    return {low, high | (uint64_t{size} << 56)};
  }

  // The number of ids of a word, written to `out`; 0 where the cache does not hold it.
  size_t lookup(const Key& key, uint32_t* out) {
    if (sets_.empty()) sets_.resize(kSets);  // a workspace that only sees long pieces needs none
    for (const Entry& entry : sets_[set(key)].entries) {
      if (entry.key != key) continue;
      std::memcpy(out, entry.ids.data(), sizeof(entry.ids));
      size_t count = 1;
      while (count < kMaxIds && entry.ids[count] != kUnused) ++count;
      return count;
    }
    return 0;
  }

  // Remembers a word that lookup() did not find, unless it has too many ids.
  void insert(const Key& key, const uint32_t* ids, size_t count) {
    if (count > kMaxIds) return;
    std::array<Entry, 2>& entries = sets_[set(key)].entries;
    entries[1] = entries[0];
    entries[0].key = key;
    entries[0].ids.fill(kUnused);
    std::copy_n(ids, count, entries[0].ids.begin());
  }

 private:
  static constexpr size_t kSets = size_t{1} << 17;

  struct Entry {
    Key key{0, 0};  // no word has length 0: the entry is free
    std::array<uint32_t, kMaxIds> ids{};
  };
  struct alignas(64) Set {
    std::array<Entry, 2> entries;
  };
  static_assert(sizeof(Set) == 64);

  size_t set(const Key& key) const { return hash_words(key.low, key.high, seeds_) & (kSets - 1); }

  HashSeeds seeds_ = HashSeeds::get();
  std::vector<Set> sets_;
};

}  // namespace bpe
