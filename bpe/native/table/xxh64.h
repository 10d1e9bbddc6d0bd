// XXH64, a hash of files and rows that other programs know: github.com/Cyan4973/xxHash,
// doc/xxhash_spec.md.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "table/bytes.h"

namespace bpe {

// XXH64 of a byte string, with the seed 0.
inline uint64_t xxh64(Bytes data) {
  constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u, kPrime2 = 0xC2B2AE3D27D4EB4Fu,
                     kPrime3 = 0x165667B19E3779F9u, kPrime4 = 0x85EBCA77C2B2AE63u,
                     kPrime5 = 0x27D4EB2F165667C5u;
  const auto round = [](uint64_t lane, uint64_t word) {
    return std::rotl(lane + word * kPrime2, 31) * kPrime1;
  };
  const uint8_t* p = data.data();
  const uint8_t* const end = p + data.size();
  uint64_t hash = kPrime5;
  if (data.size() >= 32) {
    std::array<uint64_t, 4> lanes = {kPrime1 + kPrime2, kPrime2, 0, uint64_t{0} - kPrime1};
    for (; end - p >= 32; p += 32)
      for (size_t i = 0; i < 4; ++i) lanes[i] = round(lanes[i], load_le64(p + 8 * i));
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
           std::rotl(lanes[3], 18);
    for (const uint64_t lane : lanes) hash = (hash ^ round(0, lane)) * kPrime1 + kPrime4;
  }
  hash += data.size();
  for (; end - p >= 8; p += 8)
    hash = std::rotl(hash ^ round(0, load_le64(p)), 27) * kPrime1 + kPrime4;
  if (end - p >= 4) {
    const uint64_t word = p[0] | uint64_t{p[1]} << 8 | uint64_t{p[2]} << 16 | uint64_t{p[3]} << 24;
    hash = std::rotl(hash ^ word * kPrime1, 23) * kPrime2 + kPrime3;
    p += 4;
  }
  for (; p < end; ++p) hash = std::rotl(hash ^ *p * kPrime5, 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace bpe
