// Token ids to the bytes they stand for.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "encode/model.h"
#include "encode/vocabulary.h"
#include "table/buffer.h"

namespace bpe {

// Bytes are joined as they are. The end of a word becomes a space, but for one at the end of a row.
// A space stands before each WordPiece that does not continue a word, but for the first of a row.
// Of characters, a mark becomes a space, and the token of a byte that byte.
class Decoder {
 public:
  using Bytes = std::span<const uint8_t>;

  // is_special: tokens that stand for themselves, whatever they end in.
  Decoder(const Vocabulary& vocabulary, const Model& model, const std::vector<bool>& is_special)
      : vocabulary_(vocabulary),
        kind_(model.kind),
        affix_(model.affix.size()),
        drops_space_(model.drops_space) {
    if (kind_ == Model::Kind::bytes) return;
    const bool at_end = kind_ == Model::Kind::characters;
    const Bytes affix = bytes_of(model.affix);
    has_affix_.resize(vocabulary.size());
    for (uint32_t id = 0; id < vocabulary.size(); ++id) {
      const Bytes token = vocabulary[id];
      if (token.size() < affix_ || (at_end && (is_special[id] || affix_ == 0))) continue;
      has_affix_[id] = std::ranges::equal(at_end ? token.last(affix_) : token.first(affix_), affix);
    }
    if (at_end && (!model.mark.empty() || model.byte_fallback)) spell(model);
  }

  // Rows of ids, each [offsets[i], offsets[i + 1]) of them. Throws std::invalid_argument naming row
  // and id where an id has no token. Ids that `skipped` flags are left out.
  ByteStrings decode(std::span<const uint32_t> ids, std::span<const int64_t> offsets,
                     const std::vector<bool>& skipped) const {
    check(ids, offsets);
    if (skipped.empty()) return joined(ids, offsets);
    std::vector<uint32_t> kept;
    std::vector<int64_t> ends{0};
    for (size_t row = 0; row + 1 < offsets.size(); ++row) {
      for (const uint32_t id : row_of(ids, offsets, row))
        if (!skipped[id]) kept.push_back(id);
      ends.push_back(static_cast<int64_t>(kept.size()));
    }
    return joined(kept, ends);
  }

 private:
  struct Part {
    bool space_before;
    Bytes bytes;
    bool space_after;
  };

  // Takes the bytes of all tokens, without the ends of words, as texts hold them.
  void spell(const Model& model) {
    std::array<std::string, 256> names;
    if (model.byte_fallback)
      for (size_t byte = 0; byte < names.size(); ++byte)
        names[byte] = byte_token(static_cast<uint8_t>(byte));
    ends_.push_back(0);
    for (uint32_t id = 0; id < vocabulary_.size(); ++id) {
      const Bytes token = vocabulary_[id];
      std::string text(token.begin(), has_affix_[id] ? token.end() - affix_ : token.end());
      if (const auto name = std::ranges::find(names, text); name != names.end() && !text.empty())
        text.assign(1, static_cast<char>(name - names.begin()));
      const size_t size = model.mark.size();
      for (size_t at = 0; size != 0 && (at = text.find(model.mark, at)) != text.npos; ++at)
        text.replace(at, size, " ");
      spelled_.insert(spelled_.end(), text.begin(), text.end());
      ends_.push_back(spelled_.size());
    }
  }

  void check(std::span<const uint32_t> ids, std::span<const int64_t> offsets) const {
    int64_t at = 0;
    for (size_t row = 0; row + 1 < offsets.size(); ++row) {
      if (offsets[row] != at || offsets[row + 1] < at ||
          static_cast<uint64_t>(offsets[row + 1]) > ids.size())
        throw std::invalid_argument("the offsets of the ids do not ascend from 0 within them");
      at = offsets[row + 1];
      for (const uint32_t id : row_of(ids, offsets, row))
        if (!vocabulary_.has(id))
          throw std::invalid_argument("row " + std::to_string(row) + ": no token has the id " +
                                      std::to_string(id));
    }
  }

  static std::span<const uint32_t> row_of(std::span<const uint32_t> ids,
                                          std::span<const int64_t> offsets, size_t row) {
    return ids.subspan(static_cast<size_t>(offsets[row]),
                       static_cast<size_t>(offsets[row + 1] - offsets[row]));
  }

  ByteStrings joined(std::span<const uint32_t> ids, std::span<const int64_t> offsets) const {
    ByteStrings rows;
    rows.offsets.reserve(std::max<size_t>(offsets.size(), 1));
    size_t total = 0;
    for (size_t row = 0; row + 1 < offsets.size(); ++row) {
      each_part(row_of(ids, offsets, row), [&](const Part& part) {
        total += part.space_before + part.bytes.size() + part.space_after;
      });
      rows.offsets.push_back(static_cast<int64_t>(total));
    }
    rows.data.resize(total);
    uint8_t* out = rows.data.data();
    for (size_t row = 0; row + 1 < offsets.size(); ++row) {
      each_part(row_of(ids, offsets, row), [&](const Part& part) {
        if (part.space_before) *out++ = ' ';
        out = std::ranges::copy(part.bytes, out).out;
        if (part.space_after) *out++ = ' ';
      });
    }
    return rows;
  }

  template <typename Take>
  void each_part(std::span<const uint32_t> row, Take take) const {
    for (size_t i = 0; i < row.size(); ++i) {
      Part next = part(row[i], i == 0, i + 1 == row.size());
      if (i == 0 && drops_space_ && !next.bytes.empty() && next.bytes[0] == ' ')
        next.bytes = next.bytes.subspan(1);
      take(next);
    }
  }

  Part part(uint32_t id, bool first, bool last) const {
    const Bytes token = vocabulary_[id];
    if (kind_ == Model::Kind::bytes) return {false, token, false};
    if (kind_ == Model::Kind::characters) {
      if (!ends_.empty())
        return {false, Bytes(spelled_).subspan(ends_[id], ends_[id + 1] - ends_[id]),
                has_affix_[id] && !last};
      if (!has_affix_[id]) return {false, token, false};
      return {false, token.first(token.size() - affix_), !last};
    }
    if (first) return {false, token, false};
    if (!has_affix_[id]) return {true, token, false};
    return {false, token.subspan(affix_), false};
  }

  const Vocabulary& vocabulary_;
  Model::Kind kind_;
  size_t affix_;
  std::vector<bool> has_affix_;
  std::vector<uint8_t> spelled_;  // the tokens as texts hold them, if that is not as they are
  std::vector<size_t> ends_;      // token i is spelled_[ends_[i], ends_[i + 1])
  bool drops_space_;
};

}  // namespace bpe
