// The hash table of the core: open addressing with linear probing over entries of a fixed size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "table/zeroed_array.h"

namespace bpe {

// Entries are in one array, a power of two of them, each at or after its home slot with no free
// entry between. An Entry is trivially copyable, free where all its bytes are zero, and tells so by
// is_free(). Keys and their hashes are the caller's: searches take the hash and a predicate `is`,
// which is false for free entries; what moves entries takes a function from an entry to its hash.
template <typename Entry>
class FlatTable {
 public:
  FlatTable() = default;

  // `capacity` is a power of two.
  explicit FlatTable(size_t capacity) : entries_(capacity), mask_(capacity - 1) {}

  size_t capacity() const { return mask_ + 1; }
  size_t size() const { return size_; }
  size_t nbytes() const { return capacity() * sizeof(Entry); }

  Entry& operator[](size_t slot) { return entries_[slot]; }
  const Entry& operator[](size_t slot) const { return entries_[slot]; }

  // The slot at which a search for `hash` begins.
  size_t home(uint64_t hash) const { return hash & mask_; }

  // The slot of the entry that `is` accepts, or the free slot where that entry would go. At least
  // one entry must be free.
  template <typename Is>
  size_t find(uint64_t hash, Is is) const {
    return find(entries_.data(), mask_, hash, is);
  }

  // Calls `visit` with what find() finds for each of `keys`, which have a `hash` and which entries
  // know by is(), until it returns false. Returns how often it returned true.
  template <typename Key, typename Visit>
  size_t find_while(std::span<const Key> keys, Visit visit) {
    Entry* const entries = entries_.data();  // not loaded again after what `visit` writes
    const size_t mask = mask_;
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto is = [&key = keys[i]](const Entry& entry) { return entry.is(key); };
      if (!visit(entries[find(entries, mask, keys[i].hash, is)])) return i;
    }
    return keys.size();
  }

  // Writes to the free slot that find() returned.
  void insert(size_t slot, const Entry& entry) {
    entries_[slot] = entry;
    ++size_;
  }

  // Moves all entries to an array of `capacity`.
  template <typename HashOf>
  void resize(size_t capacity, HashOf hash_of) {
    FlatTable larger(capacity);
    for (size_t slot = 0; slot < entries_.size(); ++slot)
      if (!entries_[slot].is_free()) larger.add(hash_of(entries_[slot]), entries_[slot]);
    *this = std::move(larger);
  }

  // Inserts an entry that is not in the table; returns its slot.
  size_t add(uint64_t hash, const Entry& entry) {
    const size_t slot = find(hash, [](const Entry&) { return false; });
    insert(slot, entry);
    return slot;
  }

  // Frees a slot and moves entries after it back, so that no search ends before its entry (Knuth,
  // The Art of Computer Programming, volume 3, section 6.4, Algorithm R).
  template <typename HashOf>
  void remove(size_t slot, HashOf hash_of) {
    for (size_t next = (slot + 1) & mask_; !entries_[next].is_free(); next = (next + 1) & mask_) {
      const size_t home_of_next = home(hash_of(entries_[next]));
      if (((next - home_of_next) & mask_) < ((next - slot) & mask_)) continue;
      entries_[slot] = entries_[next];
      slot = next;
    }
    entries_[slot] = Entry{};
    --size_;
  }

 private:
  template <typename Is>
  static size_t find(const Entry* entries, size_t mask, uint64_t hash, Is is) {
    size_t slot = hash & mask;
    while (!is(entries[slot]) && !entries[slot].is_free()) slot = (slot + 1) & mask;
    return slot;
  }

  ZeroedArray<Entry> entries_;
  size_t mask_ = SIZE_MAX;  // one less than the capacity
  size_t size_ = 0;
};

// An entry that refers to a record kept elsewhere, by its number.
struct RecordNumber {
  uint32_t plus_one = 0;

  bool is_free() const { return plus_one == 0; }
  uint32_t number() const { return plus_one - 1; }  // of a free entry UINT32_MAX
  static RecordNumber of(size_t number) { return {static_cast<uint32_t>(number + 1)}; }
};

}  // namespace bpe
