// How often each pre-token was counted.
//
// An entry has 32 bytes, two to a cache line. Nearly all pre-tokens have at most 15 bytes: those
// are in the entry itself, so a hit costs one cache line and no pointer is followed. Longer ones
// are in an arena. The hash is kept, so growing reads no keys. Looking up is cut in two steps,
// make_key() and add(), to prefetch between them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "count/sorted_counts.h"
#include "table/flat_table.h"
#include "table/hash.h"
#include "table/word_key.h"
#include "table/zeroed_array.h"

namespace bpe {

// Bytes that never move, in blocks filled one after the other.
class Arena {
 public:
  const uint8_t* copy(Bytes bytes) {
    if (bytes.size() > left_) {
      const size_t size = std::max(bytes.size(), kBlock);
      free_ = blocks_.emplace_back(std::make_unique_for_overwrite<uint8_t[]>(size)).get();
      left_ = size;  // not before: there may be no memory
      nbytes_ += size;
    }
    left_ -= bytes.size();
    uint8_t* const place = std::exchange(free_, free_ + bytes.size());
    std::ranges::copy(bytes, place);
    return place;
  }

  size_t nbytes() const { return nbytes_; }

 private:
  static constexpr size_t kBlock = size_t{1} << 18;

  std::vector<std::unique_ptr<uint8_t[]>> blocks_;
  uint8_t* free_ = nullptr;
  size_t left_ = 0;
  size_t nbytes_ = 0;
};

class CountTable {
 public:
  using Key = WordKey;

  explicit CountTable(bool ordered)
      : ordered_(ordered), entries_(kSmallest), places_(ordered ? kSmallest : 0) {}

  size_t size() const { return entries_.size(); }

  // Bytes this table holds in memory; while it grows, half as much again.
  size_t nbytes() const {
    return entries_.nbytes() + places_.size() * sizeof(Place) + arena_.nbytes();
  }

  // `readable` is the end of the bytes that may be read after the key's.
  [[gnu::always_inline]] Key make_key(const uint8_t* begin, const uint8_t* end,
                                      const uint8_t* readable) const {
    return Key(begin, static_cast<size_t>(end - begin), readable, seeds_);
  }

  void prefetch(const Key& key) const { __builtin_prefetch(&entries_[entries_.home(key.hash)], 1); }

  // Counts one occurrence; `place` is read where order is tracked.
  template <bool Ordered>
  void add(const Key& key, const Place& place) {
    const size_t slot = slot_of(key);
    if (entries_[slot].is_free()) {
      insert<Ordered>(key, place, slot);
      return;
    }
    ++entries_[slot].count;
    if constexpr (Ordered)
      if (place < places_[slot]) places_[slot] = place;
  }

  // All keys and counts, parted by stable_hash and sorted; the table is empty afterwards.
  SortedCountsList drain(int64_t shards) {
    std::vector<std::vector<Row>> rows(checked_shards(shards));
    const size_t each = size() / rows.size();
    for (std::vector<Row>& shard : rows) shard.reserve(each + each / 8);
    for (size_t slot = 0; slot < entries_.capacity(); ++slot) {
      const Entry& entry = entries_[slot];
      if (entry.is_free()) continue;
      uint8_t inlined[16];
      const Bytes key = bytes(entry, inlined);
      rows[stable_hash(key) % rows.size()].push_back({SortKey(key), slot});
    }
    SortedCountsList drained;
    drained.reserve(rows.size());
    for (std::vector<Row>& shard : rows) {
      drained.push_back(sorted_counts(shard));
      std::vector<Row>().swap(shard);
    }
    *this = CountTable(ordered_);
    return drained;
  }

 private:
  static constexpr size_t kSmallest = 1024;

  struct Entry : Key {
    int64_t count;  // 0 in a free entry

    bool is_free() const { return count == 0; }
  };
  static_assert(sizeof(Entry) == 32);

  struct Row {
    SortKey key;
    size_t slot;
  };

  static bool same(const Entry& entry, const Key& key) {
    if (entry.high != key.high) return false;
    if (!key.is_long()) return entry.low == key.low;
    return entry.hash == key.hash && equal_long(entry.data(), key.data(), key.size());
  }

  template <bool Ordered>
  void insert(const Key& key, const Place& place, size_t slot) {
    if ((size() + 1) * 8 > entries_.capacity() * 5) {  // at most five eighths full
      grow();
      slot = slot_of(key);
    }
    Entry entry{key, 1};
    if (key.is_long())
      entry.low = reinterpret_cast<uint64_t>(arena_.copy({key.data(), key.size()}));
    entries_.insert(slot, entry);
    if constexpr (Ordered) places_[slot] = place;
  }

  size_t slot_of(const Key& key) const {
    return entries_.find(key.hash, [&](const Entry& entry) { return same(entry, key); });
  }

  void grow() {
    FlatTable<Entry> entries(2 * entries_.capacity());
    ZeroedArray<Place> places(ordered_ ? entries.capacity() : 0);
    for (size_t slot = 0; slot < entries_.capacity(); ++slot) {
      if (entries_[slot].is_free()) continue;
      const size_t to = entries.add(entries_[slot].hash, entries_[slot]);
      if (ordered_) places[to] = places_[slot];
    }
    entries_ = std::move(entries);
    places_ = std::move(places);
  }

  // The key of an entry; one that is inside it is written out to `inlined`.
  static Bytes bytes(const Entry& entry, uint8_t (&inlined)[16]) {
    if (entry.is_long()) return {entry.data(), entry.size()};
    store_le64(inlined, entry.low);
    store_le64(inlined + 8, entry.high);
    return {inlined, entry.size()};
  }

  std::shared_ptr<SortedCounts> sorted_counts(std::vector<Row>& rows) const {
    size_t size = 0;
    for (const Row& row : rows) size += entries_[row.slot].size();
    std::sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
      if (a.key != b.key || !a.key.is_long()) return a.key < b.key;
      const Entry &x = entries_[a.slot], &y = entries_[b.slot];
      return compare({x.data(), x.size()}, {y.data(), y.size()}) < 0;
    });
    auto sorted = std::make_shared<SortedCounts>(ordered_);
    sorted->reserve(rows.size(), size);
    uint8_t inlined[16];
    for (const Row& row : rows)
      sorted->add(bytes(entries_[row.slot], inlined), entries_[row.slot].count,
                  ordered_ ? std::optional(places_[row.slot]) : std::nullopt);
    return sorted;
  }

  bool ordered_;
  HashSeeds seeds_ = HashSeeds::get();
  FlatTable<Entry> entries_;
  ZeroedArray<Place> places_;  // parallel to entries_ where order is tracked, else empty
  Arena arena_;
};

}  // namespace bpe
