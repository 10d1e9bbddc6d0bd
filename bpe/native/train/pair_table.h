// Everything the trainer knows of each pair of symbols: its count and where it occurs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "table/flat_table.h"
#include "table/hash.h"
#include "train/word_array.h"

namespace bpe {

struct SymbolPair {
  uint32_t left;
  uint32_t right;
  uint64_t key() const { return (static_cast<uint64_t>(left) << 32) | right; }
  bool operator==(const SymbolPair&) const = default;
};

// Whether the pair occurs with its left symbol at position i, which may have been merged away.
inline bool occurs(const WordArray& words, SymbolPair pair, WordArray::Position i) {
  return words.at(i) == pair.left && words.at(words.after(i)) == pair.right;
}

// Positions of the left symbol, ascending. A position may be stale: check before use. One or two,
// which is what most pairs have, are in the record itself.
struct Postings {
  using Position = WordArray::Position;
  static constexpr uint32_t kHere = 2;

  Position here[kHere] = {};  // or, of more, where they are
  uint32_t size = 0;
  uint32_t cursor = 0;  // nothing before it is valid (kept for first-seen ties)

  Position* begin() { return size <= kHere ? here : elsewhere(); }
  const Position* begin() const { return size <= kHere ? here : elsewhere(); }
  const Position* end() const { return begin() + size; }

  Position* elsewhere() const {
    Position* there;
    std::memcpy(&there, here, sizeof there);
    return there;
  }
  void put(Position* there) { std::memcpy(here, &there, sizeof there); }

  static_assert(sizeof(Position*) <= sizeof(Position[kHere]));
};

struct PairRecord {
  SymbolPair pair;
  int64_t count = 0;
  Postings postings;
};

// Records by number, in blocks: none moves when more come, so that there are never two of one.
class PairRecords {
 public:
  PairRecord& operator[](size_t i) { return blocks_[i / kBlock][i % kBlock]; }
  const PairRecord& operator[](size_t i) const { return blocks_[i / kBlock][i % kBlock]; }
  size_t size() const { return size_; }

  void add(SymbolPair pair) {
    if (size_ % kBlock == 0) blocks_.push_back(std::make_unique<PairRecord[]>(kBlock));
    (*this)[size_++].pair = pair;
  }

 private:
  static constexpr size_t kBlock = size_t{1} << 14;

  std::vector<std::unique_ptr<PairRecord[]>> blocks_;
  size_t size_ = 0;
};

// Holds positions that do not fit their record. Most die young, when their pair is merged or occurs
// no more: short arrays wait by size to be handed out again, longer ones are cut up.
class PostingArena {
 public:
  using Position = WordArray::Position;

  // Room for `size` positions, which are still to be written.
  Postings take(uint32_t size) {
    Postings taken;
    taken.size = size;
    if (size > Postings::kHere) taken.put(find(size));
    return taken;
  }

  void give_back(const Postings& postings) {
    if (postings.size > Postings::kHere) keep({postings.elsewhere(), postings.size});
  }

 private:
  static constexpr size_t kBlock = size_t{1} << 18;
  static constexpr size_t kShort = 64;

  Position* find(size_t size) {
    if (size <= kShort && short_[size] != nullptr) {
      Position* const found = short_[size];
      std::memcpy(&short_[size], found, sizeof(Position*));
      return found;
    }
    if (size > free_.size()) refill(size);
    Position* const found = free_.data();
    free_ = free_.subspan(size);
    return found;
  }

  // An array that nobody needs holds the place of the next one of its size.
  void keep(std::span<Position> array) {
    if (array.size() > kShort) {
      long_.push_back(array);
    } else if (array.size() > Postings::kHere) {
      std::memcpy(array.data(), &short_[array.size()], sizeof(Position*));
      short_[array.size()] = array.data();
    }
  }

  void refill(size_t size) {
    const std::span<Position> rest = free_;
    if (!long_.empty() && long_.back().size() >= size) {
      free_ = long_.back();
      long_.pop_back();
    } else {
      const size_t most = std::max(size, kBlock);
      blocks_.push_back(std::make_unique_for_overwrite<Position[]>(most));
      free_ = {blocks_.back().get(), most};
    }
    keep(rest);
  }

  std::vector<std::unique_ptr<Position[]>> blocks_;
  std::array<Position*, kShort + 1> short_{};
  std::vector<std::span<Position>> long_;
  std::span<Position> free_;
};

// Pairs numbered in the order in which they were first met.
class PairTable {
 public:
  static constexpr uint32_t kMissing = 0xFFFFFFFFu;

  PairRecord& operator[](uint32_t i) { return records_[i]; }
  const PairRecord& operator[](uint32_t i) const { return records_[i]; }
  size_t size() const { return records_.size(); }

  uint32_t find(SymbolPair pair) const { return numbers_[slot_of(pair)].number(); }

  uint32_t find_or_add(SymbolPair pair) {
    if ((records_.size() + 1) * 2 > numbers_.capacity()) grow();  // at most half full
    const size_t slot = slot_of(pair);
    if (numbers_[slot].is_free()) {
      numbers_.insert(slot, RecordNumber::of(records_.size()));
      records_.add(pair);
    }
    return numbers_[slot].number();
  }

  // Asks for the memory that find() will look at: first the slot, some time later the record.
  void prefetch_slot(SymbolPair pair) const {
    __builtin_prefetch(&numbers_[numbers_.home(hash_of(pair))]);
  }
  void prefetch_record(SymbolPair pair) const {
    const RecordNumber record = numbers_[numbers_.home(hash_of(pair))];
    if (!record.is_free()) __builtin_prefetch(&records_[record.number()], 1);
  }

  // A pair can get postings a second time only when a merge makes a string that was there
  // before; what comes later than the first is here.
  void add_postings(uint32_t i, Postings postings) {
    if (records_[i].postings.size == 0)
      records_[i].postings = postings;
    else
      later_[i].push_back(postings);
  }
  // Pair i occurs no more where it did.
  void drop_postings(uint32_t i) {
    arena_.give_back(records_[i].postings);
    records_[i].postings = {};
    const auto* later = later_postings(i);
    if (later == nullptr) return;
    for (const Postings& postings : *later) arena_.give_back(postings);
    later_.erase(i);
  }
  std::vector<Postings>* later_postings(uint32_t i) {
    if (later_.empty()) return nullptr;
    const auto found = later_.find(i);
    return found == later_.end() ? nullptr : &found->second;
  }

  PostingArena& arena() { return arena_; }

 private:
  uint64_t hash_of(SymbolPair pair) const {
    const uint64_t mixed = (pair.key() ^ seeds_.first) * 0x9E3779B97F4A7C15u;
    return mixed ^ (mixed >> 32);
  }
  size_t slot_of(SymbolPair pair) const {
    return numbers_.find(hash_of(pair), [&](RecordNumber record) {
      return !record.is_free() && records_[record.number()].pair == pair;
    });
  }

  void grow() {
    const size_t capacity = 2 * numbers_.capacity();
    numbers_ = {};  // before, not after, there is one of twice the size
    numbers_ = FlatTable<RecordNumber>(capacity);
    for (size_t record = 0; record < records_.size(); ++record)
      numbers_.insert(slot_of(records_[record].pair), RecordNumber::of(record));
  }

  const HashSeeds seeds_ = HashSeeds::get();  // no corpus can be prepared to collide
  FlatTable<RecordNumber> numbers_{1024};
  PairRecords records_;
  std::unordered_map<uint32_t, std::vector<Postings>> later_;
  PostingArena arena_;
};

}  // namespace bpe
