// Two hashes of byte strings: a fast one for tables in memory, a stable one for files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "table/bytes.h"

namespace bpe {

// The 128-bit product of two words, folded to 64 bits: every input bit reaches the whole result.
inline uint64_t fold_multiply(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Seeds of the table hash, drawn once a process: no text can be prepared to collide. Results never
// depend on them, because whatever leaves a table is sorted.
struct HashSeeds {
  uint64_t first, second;

  static const HashSeeds& get() {
    static const HashSeeds seeds = [] {
      std::random_device device;
      const auto word = [&] { return (uint64_t{device()} << 32) | device(); };
      return HashSeeds{word() | 1, word() | 1};
    }();
    return seeds;
  }
};

// Table hash of a string of at most 16 bytes that is in two words.
inline uint64_t hash_words(uint64_t low, uint64_t high, const HashSeeds& seeds) {
  return fold_multiply(low ^ seeds.first, high ^ seeds.second);
}

// Table hash of a string of at least 16 bytes; reads no byte outside it.
inline uint64_t hash_long(const uint8_t* data, size_t size, const HashSeeds& seeds) {
  uint64_t hash = seeds.first ^ size;
  const uint8_t* const tail = data + size - 16;
  for (const uint8_t* p = data; p < tail; p += 16)
    hash = fold_multiply(load_le64(p) ^ seeds.second, load_le64(p + 8) ^ hash);
  hash = fold_multiply(load_le64(tail) ^ seeds.second, load_le64(tail + 8) ^ hash);
  return fold_multiply(hash ^ seeds.first, seeds.second);
}

// Whether two strings of the same size, of at least 16 bytes, are equal.
inline bool equal_long(const uint8_t* a, const uint8_t* b, size_t size) {
  const auto differ = [&](size_t i) {
    return (load_le64(a + i) ^ load_le64(b + i)) | (load_le64(a + i + 8) ^ load_le64(b + i + 8));
  };
  for (size_t i = 0; i < size - 16; i += 16)
    if (differ(i)) return false;
  return !differ(size - 16);
}

// The hash that says in which part of a counts directory a pre-token is (hash % parts). It is
// part of the file format and never changes: FNV-1a with 64 bits, whose low bits are weak, then
// the 64-bit finaliser of MurmurHash3.
inline uint64_t stable_hash(Bytes string) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const uint8_t byte : string) hash = (hash ^ byte) * 0x100000001b3u;
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdu;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53u;
  return hash ^ (hash >> 33);
}

}  // namespace bpe
