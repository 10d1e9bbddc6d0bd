// What a pair of tokens merges to, and when: one flat table with open addressing.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hash.h"

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
      : slots_(std::bit_ceil(merges * 2 + 2)), mask_(slots_.size() - 1) {}

  // False, and no change, where the pair is there already.
  bool insert(uint32_t left, uint32_t right, PackedMerge merge) {
    const uint64_t key = pair_key(left, right);
    size_t i = slot(key);
    for (; slots_[i].merge != kNoMerge; i = (i + 1) & mask_)
      if (slots_[i].pair == key) return false;
    slots_[i] = {key, merge};
    return true;
  }

  PackedMerge find(uint32_t left, uint32_t right) const {
    const uint64_t key = pair_key(left, right);
    for (size_t i = slot(key); slots_[i].merge != kNoMerge; i = (i + 1) & mask_)
      if (slots_[i].pair == key) return slots_[i].merge;
    return kNoMerge;
  }

 private:
  struct Slot {
    uint64_t pair = 0;
    PackedMerge merge = kNoMerge;  // kNoMerge: the slot is free
  };

  static uint64_t pair_key(uint32_t left, uint32_t right) { return (uint64_t{left} << 32) | right; }
  size_t slot(uint64_t key) const { return hash_words(key, 0, seeds_) & mask_; }

  HashSeeds seeds_ = HashSeeds::get();
  std::vector<Slot> slots_;
  size_t mask_;
};

}  // namespace bpe
