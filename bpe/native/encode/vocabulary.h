// The tokens of a tokenizer: the bytes of each id, and the id of each byte string.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "table/buffer.h"
#include "table/flat_table.h"
#include "table/hash.h"
#include "table/word_key.h"

namespace bpe {

// Owns a copy of the bytes. An id without bytes is a gap: no such token.
class Vocabulary {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Token i is data[offsets[i], offsets[i + 1]). Throws std::invalid_argument on offsets that do
  // not ascend within the data and on two tokens of the same bytes.
  Vocabulary(Bytes data, std::span<const int64_t> offsets)
      : tokens_{{data.begin(), data.end()}, {offsets.begin(), offsets.end()}} {
    if (offsets.empty() || size() >= kNone)
      throw std::invalid_argument("a vocabulary has one offset more than tokens");
    if (offsets.front() != 0 || static_cast<uint64_t>(offsets.back()) != data.size() ||
        !std::ranges::is_sorted(offsets))
      throw std::invalid_argument("the offsets of the tokens do not ascend over their bytes");
    ids_ = FlatTable<RecordNumber>(std::bit_ceil(2 * size() + 1));
    for (uint32_t id = 0; id < size(); ++id)
      if (has(id)) insert(id);
  }

  // Ids are 0 ... size() - 1, gaps included.
  size_t size() const { return tokens_.size(); }
  size_t bytes() const { return tokens_.data.size(); }
  size_t count() const { return ids_.size(); }  // without gaps
  bool has(uint64_t id) const { return id < size() && !tokens_[id].empty(); }

  Bytes operator[](uint32_t id) const { return tokens_[id]; }

  // An id that a token has. Throws std::invalid_argument on others.
  uint32_t checked(int64_t id) const {
    if (id < 0 || !has(static_cast<uint64_t>(id)))
      throw std::invalid_argument("no token has the id " + std::to_string(id));
    return static_cast<uint32_t>(id);
  }

  // Whether each id is among these, which are checked.
  std::vector<bool> flags(const std::vector<int64_t>& ids) const {
    std::vector<bool> flags(size(), false);
    for (const int64_t id : ids) flags[checked(id)] = true;
    return flags;
  }

  // The id of a byte string, or kNone.
  uint32_t find(Bytes bytes) const { return bytes.empty() ? kNone : ids_[slot_of(bytes)].number(); }

 private:
  void insert(uint32_t id) {
    const size_t slot = slot_of((*this)[id]);
    if (!ids_[slot].is_free())
      throw std::invalid_argument("ids " + std::to_string(ids_[slot].number()) + " and " +
                                  std::to_string(id) + " are the same byte string");
    ids_.insert(slot, RecordNumber::of(id));
  }

  size_t slot_of(Bytes bytes) const {
    const uint8_t* const end = bytes.data() + bytes.size();
    const uint64_t hash = WordKey(bytes.data(), bytes.size(), end, seeds_).hash;
    return ids_.find(hash, [&](RecordNumber id) {
      return !id.is_free() && std::ranges::equal((*this)[id.number()], bytes);
    });
  }

  HashSeeds seeds_ = HashSeeds::get();
  ByteStrings tokens_;
  FlatTable<RecordNumber> ids_;
};

}  // namespace bpe
