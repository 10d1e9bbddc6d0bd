// What a pair of tokens merges to, and when: one flat table with open addressing.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "hash.h"
#include "zeroed_array.h"

namespace bpe {

// The rank of a merge above the token it makes: the smallest is the merge that comes first.
// Merges of equal rank make the same token.
using PackedMerge = uint64_t;
inline constexpr PackedMerge kNoMerge = UINT64_MAX;

inline PackedMerge pack_merge(uint32_t rank, uint32_t result) {
  return (uint64_t{rank} << 32) | result;
}
inline uint32_t merge_rank(PackedMerge merge) { return static_cast<uint32_t>(merge >> 32); }
inline uint32_t merge_result(PackedMerge merge) { return static_cast<uint32_t>(merge); }

class MergeTable {
 public:
  // A table for `merges` pairs, at most half full, so that a search ends after a step or two.
  explicit MergeTable(size_t merges)
      : slots_(std::bit_ceil(merges * 2 + 2)),
        mask_(slots_.size() - 1),
        filter_(std::bit_ceil(merges * kFilterBits / 64 + 1)) {}

  // False, and no change, where the pair is there already.
  bool insert(uint32_t left, uint32_t right, PackedMerge merge) {
    const uint64_t key = pair_key(left, right);
    const uint64_t hash = hash_words(key, 0, seeds_);
    size_t i = hash & mask_;
    for (; slots_[i].pair != 0; i = (i + 1) & mask_)
      if (slots_[i].pair == key) return false;
    slots_[i] = {key, merge};
    filter_[filter_word(hash)] |= filter_bit(hash);
    return true;
  }

  PackedMerge find(uint32_t left, uint32_t right) const {
    const uint64_t key = pair_key(left, right);
    const uint64_t hash = hash_words(key, 0, seeds_);
    if (!(filter_[filter_word(hash)] & filter_bit(hash))) return kNoMerge;
    for (size_t i = hash & mask_; slots_[i].pair != 0; i = (i + 1) & mask_)
      if (slots_[i].pair == key) return slots_[i].merge;
    return kNoMerge;
  }

 private:
  struct Slot {
    uint64_t pair;  // 0: the slot is free
    PackedMerge merge;
  };

  // Most pairs of a text do not merge. A bit for the hash of each pair that does says so of nine
  // in ten, from an array that stays in the cache next to the core.
  static constexpr size_t kFilterBits = 10;
  size_t filter_word(uint64_t hash) const { return (hash >> 38) & (filter_.size() - 1); }
  static uint64_t filter_bit(uint64_t hash) { return uint64_t{1} << (hash >> 32 & 63); }

  // Never 0, because no id is UINT32_MAX.
  static uint64_t pair_key(uint32_t left, uint32_t right) {
    return ((uint64_t{left} << 32) | right) + 1;
  }

  HashSeeds seeds_ = HashSeeds::get();
  ZeroedArray<Slot> slots_;
  size_t mask_;
  ZeroedArray<uint64_t> filter_;
};

}  // namespace bpe
