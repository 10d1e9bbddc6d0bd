// Everything the trainer knows of each pair of symbols: its count and where it occurs.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

#include "word_array.h"

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

// Positions of the left symbol, ascending. A position may be stale: check before use.
struct Postings {
  WordArray::Position* positions = nullptr;
  uint32_t size = 0;
  uint32_t cursor = 0;  // nothing before it is valid (kept for first-seen ties)
};

struct PairRecord {
  SymbolPair pair;
  int64_t count = 0;
  Postings postings;
  uint32_t pending = 0;     // occurrences found in the merge that is under way
  uint32_t merge = kNever;  // the number of the merge this pair became

  static constexpr uint32_t kNever = 0xFFFFFFFFu;
};

// Hands out arrays that live as long as the arena; nothing is freed one by one.
class PostingArena {
 public:
  WordArray::Position* take(size_t size) {
    if (size > left_) {
      const size_t block = std::max(size, kBlock);
      blocks_.push_back(std::make_unique_for_overwrite<WordArray::Position[]>(block));
      free_ = blocks_.back().get();
      left_ = block;
    }
    WordArray::Position* taken = free_;
    free_ += size;
    left_ -= size;
    return taken;
  }

 private:
  static constexpr size_t kBlock = size_t{1} << 18;
  std::vector<std::unique_ptr<WordArray::Position[]>> blocks_;
  WordArray::Position* free_ = nullptr;
  size_t left_ = 0;
};

// Pairs numbered in the order in which they were first met, found by open addressing.
class PairTable {
 public:
  static constexpr uint32_t kMissing = 0xFFFFFFFFu;

  PairTable() { slots_.assign(1024, kMissing); }

  PairRecord& operator[](uint32_t i) { return records_[i]; }
  const PairRecord& operator[](uint32_t i) const { return records_[i]; }
  size_t size() const { return records_.size(); }

  uint32_t find(SymbolPair pair) const {
    for (size_t i = slot_of(pair);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i] == kMissing || records_[slots_[i]].pair == pair) return slots_[i];
    }
  }

  uint32_t find_or_add(SymbolPair pair) {
    if ((records_.size() + 1) * 2 > slots_.size()) grow();
    for (size_t i = slot_of(pair);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i] == kMissing) {
        slots_[i] = static_cast<uint32_t>(records_.size());
        records_.emplace_back().pair = pair;
        return slots_[i];
      }
      if (records_[slots_[i]].pair == pair) return slots_[i];
    }
  }

  // A pair can get postings a second time only when a merge makes a string that was there
  // before; what comes later than the first lies here.
  void add_postings(uint32_t i, Postings postings) {
    if (records_[i].postings.size == 0)
      records_[i].postings = postings;
    else
      later_[i].push_back(postings);
  }
  std::vector<Postings>* later_postings(uint32_t i) {
    if (later_.empty()) return nullptr;
    const auto found = later_.find(i);
    return found == later_.end() ? nullptr : &found->second;
  }

  PostingArena& arena() { return arena_; }

 private:
  size_t slot_of(SymbolPair pair) const {
    const uint64_t mixed = pair.key() * 0x9E3779B97F4A7C15u;
    return (mixed ^ (mixed >> 32)) & (slots_.size() - 1);
  }

  void grow() {
    slots_.assign(slots_.size() * 2, kMissing);
    for (uint32_t record = 0; record < records_.size(); ++record) {
      size_t i = slot_of(records_[record].pair);
      while (slots_[i] != kMissing) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = record;
    }
  }

  std::vector<uint32_t> slots_;  // a power of two of them, at most half used
  std::vector<PairRecord> records_;
  std::unordered_map<uint32_t, std::vector<Postings>> later_;
  PostingArena arena_;
};

}  // namespace bpe
