// Remembers how pre-tokens encode: most words of a text were in it before.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hash.h"
#include "zeroed_array.h"

namespace bpe {

// Words of up to kMaxBytes bytes and kMaxIds ids. Bounded: kSets sets of two entries. A new entry
// takes the place of the older one of its set. Keys and ids lie in the entry, so that a hit touches
// one line of memory.
template <size_t kWords, size_t kIds, size_t kSets>
class WordCache {
 public:
  static constexpr size_t kMaxBytes = 8 * kWords - 1;
  static constexpr size_t kMaxIds = kIds;

  // A word of 1 to kMaxBytes bytes, its length in the last byte, and where its set is.
  struct Key {
    std::array<uint64_t, kWords> words;
    size_t set;
  };

  // Reads [word, word + size) and, where they lie before `readable`, bytes behind it.
  Key key(const uint8_t* word, size_t size, const uint8_t* readable) const {
    Key key;
    if (static_cast<size_t>(readable - word) >= 8 * kWords) {
      for (size_t i = 0; i < kWords; ++i) {
        const size_t left = size > 8 * i ? size - 8 * i : 0;
        const uint64_t keep = left >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * left)) - 1;
        key.words[i] = load_le64(word + 8 * i) & keep;
      }
    } else {
      uint8_t padded[8 * kWords] = {};
      std::memcpy(padded, word, size);
      for (size_t i = 0; i < kWords; ++i) key.words[i] = load_le64(padded + 8 * i);
    }
    key.words[kWords - 1] |= uint64_t{size} << 56;
    uint64_t hash = hash_words(key.words[0], key.words[1], seeds_);
    for (size_t i = 2; i < kWords; i += 2)
      hash = hash_words(key.words[i] ^ hash, key.words[i + 1], seeds_);
    key.set = hash & (kSets - 1);
    return key;
  }

  // Starts to fetch the set of a word that lookup() will ask for.
  void prefetch(const Key& key) const { __builtin_prefetch(sets_ + key.set); }

  // The number of ids of a word; 0 where the cache does not hold it. `out` has room for kMaxIds
  // ids and gets them all, behind the word's own ones whatever is there.
  size_t lookup(const Key& key, uint32_t* out) const {
    for (const Entry& entry : sets_[key.set].entries) {
      if (!same(entry.words, key.words)) continue;
      std::memcpy(out, entry.ids.data(), sizeof(entry.ids));
      size_t count = 1;
      while (count < kIds && entry.ids[count] != kUnused) ++count;
      return count;
    }
    return 0;
  }

  // Remembers a word that lookup() did not find.
  void insert(const Key& key, const uint32_t* ids, size_t count) {
    std::array<Entry, 2>& entries = sets_[key.set].entries;
    entries[1] = entries[0];
    entries[0].words = key.words;
    entries[0].ids.fill(kUnused);
    std::copy_n(ids, count, entries[0].ids.begin());
  }

 private:
  static constexpr uint32_t kUnused = UINT32_MAX;
  static constexpr size_t kLine = 64;  // bytes of a line of the cache

  struct Entry {
    std::array<uint64_t, kWords> words;  // no word has length 0: all zero is free
    std::array<uint32_t, kIds> ids;
  };
  struct Set {
    std::array<Entry, 2> entries;
  };
  static_assert(sizeof(Set) % kLine == 0);

  static Set* aligned(Set* memory) {
    const auto address = reinterpret_cast<uintptr_t>(memory);
    return reinterpret_cast<Set*>((address + kLine - 1) & ~(kLine - 1));
  }

  // What == becomes a call of memcmp.
  static bool same(const std::array<uint64_t, kWords>& a, const std::array<uint64_t, kWords>& b) {
    uint64_t difference = 0;
    for (size_t i = 0; i < kWords; ++i) difference |= a[i] ^ b[i];
    return difference == 0;
  }

  HashSeeds seeds_ = HashSeeds::get();
  // An array as malloc gives it would put every set astride of two lines.
  ZeroedArray<Set> memory_{kSets + 1};
  Set* sets_ = aligned(memory_.data());
};

// Nine in ten words are short and few ids: 8 MiB of entries of 32 bytes.
using ShortWords = WordCache<2, 4, size_t{1} << 17>;
// What is longer, as words in other scripts than Latin are: 4 MiB of entries of 64 bytes.
using LongWords = WordCache<4, 8, size_t{1} << 15>;

}  // namespace bpe
