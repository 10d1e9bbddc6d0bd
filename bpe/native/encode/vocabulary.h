// The tokens of a tokenizer: the bytes of each id, and the id of each byte string.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "table/hash.h"

namespace bpe {

// Owns a copy of the bytes. An id without bytes is a gap: no such token.
class Vocabulary {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Token i is data[offsets[i], offsets[i + 1]). Throws std::invalid_argument on offsets that do
  // not ascend within the data and on two tokens of the same bytes.
  Vocabulary(std::span<const uint8_t> data, std::span<const int64_t> offsets)
      : data_(data.begin(), data.end()), offsets_(offsets.begin(), offsets.end()) {
    if (offsets_.empty() || offsets_.size() - 1 >= kNone)
      throw std::invalid_argument("a vocabulary has one offset more than tokens");
    if (offsets_.front() != 0 || static_cast<uint64_t>(offsets_.back()) != data_.size() ||
        !std::is_sorted(offsets_.begin(), offsets_.end()))
      throw std::invalid_argument("the offsets of the tokens do not ascend over their bytes");
    slots_.assign(std::bit_ceil(2 * size() + 1), kNone);
    for (uint32_t id = 0; id < size(); ++id)
      if (has(id)) insert(id);
  }

  // Ids are 0 ... size() - 1, gaps included.
  size_t size() const { return offsets_.size() - 1; }
  bool has(uint64_t id) const { return id < size() && offsets_[id] != offsets_[id + 1]; }

  std::span<const uint8_t> operator[](uint32_t id) const {
    return {data_.data() + offsets_[id], static_cast<size_t>(offsets_[id + 1] - offsets_[id])};
  }

  // The id of a byte string, or kNone.
  uint32_t find(std::span<const uint8_t> bytes) const {
    if (bytes.empty()) return kNone;
    for (size_t i = slot(bytes); slots_[i] != kNone; i = (i + 1) & (slots_.size() - 1))
      if (std::ranges::equal((*this)[slots_[i]], bytes)) return slots_[i];
    return kNone;
  }

  // The token of each single byte, kNone where there is none.
  std::array<uint32_t, 256> byte_ids() const {
    std::array<uint32_t, 256> ids;
    for (int byte = 0; byte < 256; ++byte) {
      const uint8_t value = static_cast<uint8_t>(byte);
      ids[value] = find({&value, 1});
    }
    return ids;
  }

 private:
  void insert(uint32_t id) {
    const std::span<const uint8_t> bytes = (*this)[id];
    size_t i = slot(bytes);
    for (; slots_[i] != kNone; i = (i + 1) & (slots_.size() - 1))
      if (std::ranges::equal((*this)[slots_[i]], bytes))
        throw std::invalid_argument("ids " + std::to_string(slots_[i]) + " and " +
                                    std::to_string(id) + " are the same byte string");
    slots_[i] = id;
  }

  size_t slot(std::span<const uint8_t> bytes) const {
    uint64_t hash;
    if (bytes.size() >= 16) {
      hash = hash_long(bytes.data(), bytes.size(), seeds_);
    } else {
      uint8_t padded[16] = {};
      std::memcpy(padded, bytes.data(), bytes.size());
      padded[15] = static_cast<uint8_t>(bytes.size());
      hash = hash_words(load_le64(padded), load_le64(padded + 8), seeds_);
    }
    return hash & (slots_.size() - 1);
  }

  HashSeeds seeds_ = HashSeeds::get();
  std::vector<uint8_t> data_;
  std::vector<int64_t> offsets_;
  std::vector<uint32_t> slots_;
};

}  // namespace bpe
