// Remembers how pre-tokens encode: most words of a text were in it before.
//
// Open addressing with linear probing over entries of 32 bytes, two to a line of memory. Nearly all
// words have at most 15 bytes and 4 ids: both lie in the entry, so that a hit touches one line and
// follows no pointer. What is longer lies in an array behind. Bounded: when either is full,
// everything is forgotten.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "table/hash.h"
#include "table/word_key.h"
#include "table/zeroed_array.h"

namespace bpe {

class WordCache {
 public:
  using Bytes = std::span<const uint8_t>;

  static constexpr size_t kMaxInline = 4;          // ids that lie in the entry
  static constexpr size_t kMaxBytes = 1024;        // longer words are not worth the memory
  static constexpr size_t kMostEntries = 1 << 20;  // 32 MiB

  // Of a long word, which may move, `low` is the hash.
  using Key = WordKey;

  // With room for so many words, and about as many again before it grows.
  explicit WordCache(size_t words = 0) {
    resize(std::clamp(std::bit_ceil(4 * words), kFewest, kMostEntries));
  }

  // [word, word + size) is not empty; bytes behind it up to `readable` may be read.
  Key key(const uint8_t* word, size_t size, const uint8_t* readable) const {
    Key key(word, size, readable, seeds_);
    if (key.is_long()) [[unlikely]]
      key.low = key.hash;
    return key;
  }

  // Whether words it knew are forgotten.
  bool forgot() const { return forgot_; }

  // Starts to fetch the entry of a word that will be asked for.
  void prefetch(const Key& key) const { __builtin_prefetch(&entries_[key.hash & mask_]); }

  // Writes kMaxInline ids to `out`, those of the word first, and returns how many the word has; 0
  // where it is not known, is long, or has more of them.
  size_t find_short(const Key& key, uint32_t* out) const {
    const Entry* entry = &entries_[key.hash & mask_];
    while (!entry->is(key)) {
      if (entry->is_free()) return 0;
      if (++entry == end_) entry = entries_.data();
    }
    std::memcpy(out, entry->ids.data(), sizeof(entry->ids));
    return entry->count();
  }

  // The ids of a word; empty where it is not known. They stay until the next insert().
  std::span<const uint32_t> find(const Key& key, Bytes word) const {
    const Entry* entry = &entries_[key.hash & mask_];
    for (; !entry->is_free(); entry = entry + 1 == end_ ? entries_.data() : entry + 1) {
      if (!entry->is(key)) continue;
      if (entry->count() > 0) return {entry->ids.data(), entry->count()};
      const uint32_t* const ids = memory_.data() + entry->ids[1];
      const size_t count = entry->ids[2];
      if (!key.is_long() || std::memcmp(ids + count, word.data(), word.size()) == 0)
        return {ids, count};
    }
    return {};
  }

  // Remembers a word that find() did not find.
  void insert(const Key& key, Bytes word, std::span<const uint32_t> ids) {
    if (word.size() > kMaxBytes) return;
    const bool is_inline = !key.is_long() && ids.size() <= kMaxInline;
    const size_t needed = is_inline ? 0 : ids.size() + (key.is_long() ? (word.size() + 3) / 4 : 0);
    if (memory_.size() + needed > kMostMemory) forget();
    if ((size_ + 1) * 8 > entries_.size() * 5) {  // at most five eighths full
      if (entries_.size() < kMostEntries) {
        resize(entries_.size() * 2);
      } else {
        forget();
      }
    }
    Entry entry{key.low, key.high, {kUnused, kUnused, kUnused, kUnused}};
    if (is_inline) {
      std::ranges::copy(ids, entry.ids.begin());
    } else {
      entry.ids[1] = static_cast<uint32_t>(memory_.size());
      entry.ids[2] = static_cast<uint32_t>(ids.size());
      memory_.resize(memory_.size() + needed);
      uint32_t* const place = memory_.data() + entry.ids[1];
      std::ranges::copy(ids, place);
      if (key.is_long()) std::memcpy(place + ids.size(), word.data(), word.size());
    }
    place(entry, key.hash);
    ++size_;
  }

 private:
  static constexpr uint32_t kUnused = UINT32_MAX;
  static constexpr size_t kFewest = 1 << 12;
  static constexpr size_t kMostMemory = size_t{4} << 20;  // words of 4 bytes: 16 MiB

  struct Entry {
    uint64_t low, high;                    // no word has length 0: all zero is free
    std::array<uint32_t, kMaxInline> ids;  // or kUnused, where in memory_ they begin, their number

    bool is_free() const { return high == 0; }
    bool is(const Key& key) const { return ((low ^ key.low) | (high ^ key.high)) == 0; }
    size_t count() const {
      if (ids[0] == kUnused) return 0;
      return size_t{1} + (ids[1] != kUnused) + (ids[2] != kUnused) + (ids[3] != kUnused);
    }
  };
  static_assert(sizeof(Entry) == 32);

  void place(const Entry& entry, uint64_t hash) {
    size_t i = hash & mask_;
    while (!entries_[i].is_free()) i = (i + 1) & mask_;
    entries_[i] = entry;
  }

  void resize(size_t capacity) {
    ZeroedArray<Entry> old(capacity);
    std::swap(old, entries_);
    mask_ = capacity - 1;
    end_ = entries_.data() + capacity;
    for (size_t i = 0; i < old.size(); ++i)
      if (const Entry& entry = old[i]; !entry.is_free())
        place(entry, entry.high >> 56 == WordKey::kLong
                         ? entry.low
                         : hash_words(entry.low, entry.high, seeds_));
  }

  void forget() {
    std::memset(entries_.data(), 0, entries_.size() * sizeof(Entry));
    memory_.clear();
    size_ = 0;
    forgot_ = true;
  }

  HashSeeds seeds_ = HashSeeds::get();
  ZeroedArray<Entry> entries_;
  const Entry* end_ = nullptr;
  size_t mask_ = 0;
  size_t size_ = 0;
  bool forgot_ = false;
  std::vector<uint32_t> memory_;  // ids, and behind those of a long word its bytes
};

}  // namespace bpe
