// Remembers how pre-tokens encode: most words of a text were in it before.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "table/flat_table.h"
#include "table/hash.h"
#include "table/id_array.h"
#include "table/word_key.h"

namespace bpe {

// What the word caches of a process may take together, in addition to what each has for itself.
class CacheMemory {
 public:
  static constexpr size_t kMost = size_t{64} << 20;  // bytes

  // False, and no change, where so many bytes more would be too many.
  static bool take(size_t bytes) {
    size_t used = used_.load(std::memory_order_relaxed);
    while (used + bytes <= kMost)
      if (used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed)) return true;
    return false;
  }
  static void give_back(size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  static inline std::atomic<size_t> used_ = 0;
};

// An entry has 32 bytes, two to a cache line. Nearly all words have at most 15 bytes and few ids:
// both are in the entry, so that a hit touches one line and follows no pointer. What is longer is
// in a ring of bytes, whose oldest content is overwritten. When the table can grow no more, each
// new word takes the place of a neighbour that was not asked for since a new word last came by
// (second chance: F. J. Corbató, "A Paging Experiment with the Multics System", 1968): the rare
// ones go, and tokens stay.
class WordCache {
 public:
  static constexpr size_t kMaxInline = 8;        // ids that find_inline() may write for a word
  static constexpr size_t kMaxBytes = 1024;      // longer words are not worth the memory
  static constexpr size_t kMostWords = 1 << 18;  // that fit whatever other caches hold

  // Of a long word, which may move, `low` is the hash.
  using Key = WordKey;

  // With room for `words`, and about as many again before it grows. All ids are below `ids`.
  WordCache(size_t words, size_t ids)
      : is_narrow_(ids <= size_t{1} << 16),
        entries_(std::clamp(std::bit_ceil(4 * words), kFewestEntries, kMostEntries / 2)),
        ring_(kFewestBytes + kLine) {}
  WordCache(const WordCache&) = delete;
  WordCache& operator=(const WordCache&) = delete;
  ~WordCache() { CacheMemory::give_back(taken_); }

  // Whether ids are kept in 16 bits, seven of them in an entry; else four.
  bool is_narrow() const { return is_narrow_; }

  // [word, word + size) is not empty; bytes after it up to `readable` may be read.
  [[gnu::always_inline]] Key key(const uint8_t* word, size_t size, const uint8_t* readable) const {
    Key key(word, size, readable, seeds_);
    if (key.is_long()) [[unlikely]]
      key.low = key.hash;
    return key;
  }

  // Whether words are forgotten that are too long for an entry.
  bool forgot_long() const { return forgot_long_; }

  // Starts to fetch the entry of a word that will be asked for.
  void prefetch(const Key& key) const { __builtin_prefetch(&entries_[entries_.home(key.hash)]); }

  // Starts to fetch the entries after that, which a search for a new word goes through.
  void prefetch_next(const Key& key) const {
    const size_t mask = entries_.capacity() - 1, slot = entries_.home(key.hash);
    __builtin_prefetch(&entries_[(slot + kInLine) & mask]);
    __builtin_prefetch(&entries_[(slot + 2 * kInLine) & mask]);
  }

  // Where the ring holds the ids of a word, and after those of a long word its bytes.
  struct Place {
    uint64_t at;
    uint32_t ids;  // how many; 0 where the word is not known
  };

  // The place of a long word, which it starts to fetch.
  Place find_long(const Key& key) {
    Entry& entry = entries_[slot_of(key)];
    if (entry.is_free()) return {0, 0};
    entry.high |= kRecent;
    __builtin_prefetch(&ring_[entry.place() % ring_size()]);
    return {entry.place(), entry.ids[2]};
  }

  // Writes the ids of the words of `keys` to `out`, up to the first word that is not known or not
  // inline, and moves `out` after them; it may write kMaxInline ids there. Returns how many words
  // that are; `place` is that of the next one. Cached: uint16_t if this is narrow.
  template <typename Cached, typename Id>
  size_t find_inline(std::span<const Key> keys, Id*& out, Place& place) {
    Id* to = out;
    const size_t number = entries_.find_while(keys, [&](Entry& entry) {
      copy_line<Cached>(entry.ids.data(), to);
      const uint64_t head = entry.high >> kHeadShift;
      if (head <= kRecentHead) [[unlikely]] {         // not recent, or not here
        entry.high |= entry.is_free() ? 0 : kRecent;  // written to once, not each time
        if ((head & kMostCount) == 0) {
          place = {entry.place(), entry.ids[2]};
          return false;
        }
      }
      to += head & kMostCount;
      return true;
    });
    out = to;
    return number;
  }

  // Appends the ids of a word; false where the ring does not hold them any more.
  bool copy(const Place& place, const Key& key, Bytes word, IdArray& out) const {
    if (place.ids == 0 || place.at + ring_size() < written_) return false;
    const uint8_t* const ids = &ring_[place.at % ring_size()];
    if (key.is_long() && !equal_long(ids + place.ids * id_size(), word.data(), word.size()))
      return false;
    if (!is_narrow_)
      copy<uint32_t>(ids, place.ids, out.reserve<uint32_t>(place.ids + kSpare));
    else if (out.is_narrow())
      copy<uint16_t>(ids, place.ids, out.reserve<uint16_t>(place.ids + kSpare));
    else
      copy<uint16_t>(ids, place.ids, out.reserve<uint32_t>(place.ids + kSpare));
    out.advance(place.ids);
    return true;
  }

  // Remembers a word that is a token: for ever, unless it is too long for an entry. At most
  // kMostWords may be so.
  void insert_token(const Key& key, Bytes word, uint32_t id) {
    insert(key, word, {&id, 1});
    if (!key.is_long()) entries_[slot_of(key)].ids[3] = kForever;
  }

  // Remembers a word that neither found.
  void insert(const Key& key, Bytes word, std::span<const uint32_t> ids) {
    if (word.size() > kMaxBytes) return;
    Entry entry{key.low, key.high, {}};
    if (!key.is_long() && ids.size() <= (is_narrow_ ? 7 : 4)) {
      entry.high |= uint64_t{ids.size()} << kHeadShift;
      write_ids(ids, reinterpret_cast<uint8_t*>(entry.ids.data()));
    } else {
      const size_t bytes = ids.size() * id_size();
      const uint64_t place = room_in_ring(bytes + (key.is_long() ? word.size() : 0));
      uint8_t* const to = &ring_[place % ring_size()];
      write_ids(ids, to);
      if (key.is_long()) std::memcpy(to + bytes, word.data(), word.size());
      std::memcpy(entry.ids.data(), &place, sizeof place);
      entry.ids[2] = static_cast<uint32_t>(ids.size());
    }
    if (const size_t slot = slot_of(key); !entries_[slot].is_free())
      entries_[slot] = entry;  // what the ring held of it was overwritten
    else
      insert_new(key, slot, entry);
  }

 private:
  static constexpr size_t kLine = 16;  // bytes of ids that are copied at once
  static constexpr size_t kSpare = kMaxInline;
  static constexpr size_t kFewestEntries = 1 << 12;
  static constexpr size_t kOwnEntries = 2 * kMostWords;    // 16 MiB
  static constexpr size_t kMostEntries = 4 * kOwnEntries;  // 64 MiB
  static constexpr size_t kFewestBytes = 1 << 16;          // of the ring
  static constexpr size_t kOwnBytes = size_t{4} << 20;
  static constexpr size_t kMostBytes = size_t{32} << 20;

  // The first four bits of an entry's `high`, where a key has none: whether it was asked for since
  // a new word last came by, and how many ids are in it, 0 where they are in the ring.
  static constexpr int kHeadShift = 60;
  static constexpr uint64_t kMostCount = 7;
  static constexpr uint64_t kRecent = uint64_t{1} << 63, kRecentHead = kRecent >> kHeadShift;
  static constexpr uint64_t kKey = (uint64_t{1} << kHeadShift) - 1;
  static constexpr uint32_t kForever = UINT32_MAX;  // after the id of a token that stays

  struct Entry {
    uint64_t low, high;           // no word has length 0: a `high` of 0 is free
    std::array<uint32_t, 4> ids;  // or the place in the ring, in 8 bytes, and how many there are

    bool is_free() const { return high == 0; }
    bool is(const Key& key) const { return ((low ^ key.low) | ((high ^ key.high) & kKey)) == 0; }
    size_t count() const { return (high >> kHeadShift) & kMostCount; }
    bool stays() const { return count() == 1 && ids[3] == kForever; }
    uint64_t place() const {
      uint64_t place;
      std::memcpy(&place, ids.data(), sizeof place);
      return place;
    }
  };
  static_assert(sizeof(Entry) == 32);
  static constexpr size_t kInLine = 2;  // entries

  size_t slot_of(const Key& key) const {
    return entries_.find(key.hash, [&](const Entry& entry) { return entry.is(key); });
  }

  uint64_t hash_of(const Entry& entry) const {
    const uint64_t high = entry.high & kKey;
    return WordKey::is_long(high) ? entry.low : hash_words(entry.low, high, seeds_);
  }

  size_t id_size() const { return is_narrow_ ? 2 : 4; }
  size_t ring_size() const { return ring_.size() - kLine; }

  // Copies kLine bytes of ids.
  template <typename Cached, typename Id>
  static void copy_line(const void* from, Id* to) {
    std::array<Cached, kLine / sizeof(Cached)> ids;
    std::memcpy(ids.data(), from, sizeof ids);
    if constexpr (std::is_same_v<Cached, Id>)
      std::memcpy(to, ids.data(), sizeof ids);
    else
      for (size_t i = 0; i < ids.size(); ++i) to[i] = ids[i];
  }

  template <typename Cached, typename Id>
  static void copy(const uint8_t* from, size_t ids, Id* to) {
    constexpr size_t kStep = kLine / sizeof(Cached);
    for (size_t i = 0; i < ids; i += kStep) copy_line<Cached>(from + i * sizeof(Cached), to + i);
  }

  void write_ids(std::span<const uint32_t> ids, uint8_t* to) const {
    if (!is_narrow_) {
      std::memcpy(to, ids.data(), ids.size_bytes());
      return;
    }
    for (const uint32_t id : ids) {
      const auto narrow = static_cast<uint16_t>(id);
      std::memcpy(to, &narrow, sizeof narrow);
      to += sizeof narrow;
    }
  }

  // Inserts a word that is new, whose search ends at the slot `free`. Five eighths full, the table
  // grows if it may, or forgets; where it cannot grow, half full. (A fuller one finds what it holds
  // as fast, but takes long to see what is new.)
  void insert_new(const Key& key, size_t free, const Entry& entry) {
    const size_t capacity = entries_.capacity();
    if (entries_.size() >= (capacity < kMostEntries ? capacity / 8 * 5 : capacity / 2)) {
      if (capacity < kMostEntries && may_take(capacity * sizeof(Entry), capacity < kOwnEntries)) {
        entries_.resize(2 * capacity, [this](const Entry& other) { return hash_of(other); });
        free = slot_of(key);
      } else if (const size_t slot = rare_slot(entries_.home(key.hash), free); slot != free) {
        forgot_long_ |= WordKey::is_long(entries_[slot].high & kKey);
        entries_[slot] = entry;  // searches go on past it as before
        return;
      } else {
        forget_after(free);
      }
    }
    entries_.insert(free, entry);
  }

  // The first of the slots [slot, end) whose word was not asked for lately, else `end`.
  size_t rare_slot(size_t slot, size_t end) {
    for (; slot != end; slot = (slot + 1) & (entries_.capacity() - 1)) {
      Entry& entry = entries_[slot];
      if (entry.is_free() || entry.stays()) continue;
      if ((entry.high & kRecent) == 0) break;
      entry.high &= ~kRecent;
    }
    return slot;
  }

  // Whether there are so many bytes more for this cache; `own` are there in any case.
  bool may_take(size_t bytes, bool own) {
    if (own) return true;
    if (!CacheMemory::take(bytes)) return false;
    taken_ += bytes;
    return true;
  }

  // Forgets a word after a free slot: were it elsewhere, the table would fill up there.
  void forget_after(size_t free) {
    size_t slot = free;
    while (slot == free) slot = rare_slot((free + 1) & (entries_.capacity() - 1), free);
    forgot_long_ |= WordKey::is_long(entries_[slot].high & kKey);
    entries_.remove(slot, [this](const Entry& entry) { return hash_of(entry); });
  }

  // The place in the ring of so many bytes that are to be written. Places are counted from the
  // first byte that was ever written, and what is written together is never cut in two.
  uint64_t room_in_ring(size_t bytes) {
    // It can only grow before anything in it was overwritten.
    if (size_t size = ring_size(); written_ + bytes > size && written_ <= size &&
                                   size < kMostBytes && may_take(size, size < kOwnBytes))
      ring_.resize(2 * size + kLine);
    const size_t left = ring_size() - written_ % ring_size();
    const uint64_t place = bytes <= left ? written_ : written_ + left;
    written_ = place + bytes;
    forgot_long_ |= written_ > ring_size();
    return place;
  }

  HashSeeds seeds_ = HashSeeds::get();
  bool is_narrow_;
  bool forgot_long_ = false;
  FlatTable<Entry> entries_;
  std::vector<uint8_t> ring_;  // ids, and after those of a long word its bytes; kLine bytes more
  uint64_t written_ = 0;       // bytes, ever
  size_t taken_ = 0;           // of CacheMemory, in bytes
};

}  // namespace bpe
