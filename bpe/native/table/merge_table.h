// What a pair of tokens merges to, and when.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "table/flat_table.h"
#include "table/hash.h"
#include "table/zeroed_array.h"

namespace bpe {

// The rank of a merge: the smallest is the merge that comes first. Merges of equal rank make the
// same token.
using Rank = uint32_t;
inline constexpr Rank kNoMerge = UINT32_MAX;

class MergeTable {
 public:
  struct Merge {
    Rank rank = kNoMerge;
    uint32_t result = 0;  // the token that the merge makes, if it is one
  };

  // A table for `merges` pairs, at most four fifths full, so that a search ends after a few steps.
  explicit MergeTable(size_t merges)
      : pairs_(std::bit_ceil(merges + merges / 4 + 1)),
        filter_(std::bit_ceil(merges * kFilterBits / 64 + 1)) {}

  // False, and no change, where the pair is there already.
  bool insert(uint32_t left, uint32_t right, Rank rank, uint32_t result) {
    const uint64_t hash = hash_of(left, right);
    const size_t slot = slot_of(hash, left, right);
    if (!pairs_[slot].is_free()) return false;
    pairs_.insert(slot, {left, right, rank + 1, result});
    filter_[filter_word(hash)] |= filter_bit(hash);
    if ((left | right) < kLowIds) {
      if (low_ids_ == 0) low_ = ZeroedArray<Low>(kLowIds * kLowIds);
      low_ids_ = kLowIds;
      low_[low_index(left, right)] = {rank + 1, result};
    }
    ranks_ = std::max(ranks_, size_t{rank} + 1);
    return true;
  }

  // The merge of a pair; its rank is kNoMerge where there is none.
  Merge find(uint32_t left, uint32_t right) const {
    if ((left | right) < low_ids_) {
      const Low& low = low_[low_index(left, right)];
      return {low.used - 1, low.result};
    }
    const uint64_t hash = hash_of(left, right);
    if (!(filter_[filter_word(hash)] & filter_bit(hash))) return {};
    const Pair& pair = pairs_[slot_of(hash, left, right)];
    return {pair.used - 1, pair.result};
  }

  // Starts to fetch what find() reads of a pair.
  void prefetch(uint32_t left, uint32_t right) const {
    __builtin_prefetch(&pairs_[pairs_.home(hash_of(left, right))]);
  }

  // One more than the greatest rank.
  size_t ranks() const { return ranks_; }

 private:
  struct Pair {
    uint32_t left, right;
    uint32_t used;  // the rank and one; 0 in a free entry
    uint32_t result;

    bool is_free() const { return used == 0; }
  };
  struct Low {
    uint32_t used, result;  // as in a Pair
  };

  // The pairs of bytes, and of what they make first, are asked for most: they have an array by
  // themselves, in which a look is enough, if there are any.
  static constexpr uint32_t kLowIds = 256;
  static size_t low_index(uint32_t left, uint32_t right) { return left * kLowIds + right; }

  // Most pairs of a text do not merge. A bit for the hash of each pair that does says so of nine
  // in ten, from an array that stays in the cache next to the core.
  static constexpr size_t kFilterBits = 10;
  size_t filter_word(uint64_t hash) const { return (hash >> 6) & (filter_.size() - 1); }
  static uint64_t filter_bit(uint64_t hash) { return uint64_t{1} << (hash & 63); }

  uint64_t hash_of(uint32_t left, uint32_t right) const {
    return hash_words((uint64_t{left} << 32) | right, 0, seeds_);
  }
  size_t slot_of(uint64_t hash, uint32_t left, uint32_t right) const {
    return pairs_.find(hash, [&](const Pair& pair) {
      return pair.left == left && pair.right == right && !pair.is_free();
    });
  }

  HashSeeds seeds_ = HashSeeds::get();
  uint32_t low_ids_ = 0;  // kLowIds, if there is the array
  ZeroedArray<Low> low_;
  FlatTable<Pair> pairs_;
  ZeroedArray<uint64_t> filter_;
  size_t ranks_ = 0;
};

}  // namespace bpe
