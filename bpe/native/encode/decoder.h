// Token ids to the bytes they represent.
#pragma once

#include <algorithm>
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
// A space goes before each WordPiece that does not continue a word, but for the first of a row.
// Of characters, a mark becomes a space, and the token of a byte that byte.
class Decoder {
 public:
  using Bytes = std::span<const uint8_t>;

  // is_special: tokens that represent themselves, whatever they end in.
  Decoder(const Vocabulary& vocabulary, const Model& model, const std::vector<bool>& is_special)
      : vocabulary_(vocabulary), kind_(model.kind), drops_space_(model.drops_space) {
    if (kind_ == Model::Kind::bytes) return;
    const bool at_end = kind_ == Model::Kind::characters;
    std::vector<std::string> names;  // of the tokens of bytes
    for (int byte = 0; model.byte_fallback && byte < 256; ++byte)
      names.push_back(byte_token(static_cast<uint8_t>(byte)));
    for (uint32_t id = 0; id < vocabulary.size(); ++id) {
      const Bytes token = vocabulary[id];
      std::string text(token.begin(), token.end());
      has_affix_.push_back(at_end ? !is_special[id] && !model.affix.empty() &&
                                        text.ends_with(model.affix)
                                  : text.starts_with(model.affix));
      if (has_affix_[id])
        text.erase(at_end ? text.size() - model.affix.size() : 0, model.affix.size());
      if (at_end) spell(model, names, text);
      texts_.data.insert(texts_.data.end(), text.begin(), text.end());
      texts_.end();
    }
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

  // Makes a token without the end of a word what texts hold of it.
  static void spell(const Model& model, const std::vector<std::string>& names, std::string& text) {
    if (const auto name = std::ranges::find(names, text); name != names.end())
      text.assign(1, static_cast<char>(name - names.begin()));
    const size_t size = model.mark.size();
    for (size_t at = 0; size != 0 && (at = text.find(model.mark, at)) != text.npos; ++at)
      text.replace(at, size, 1, ' ');
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
    const bool is_piece = kind_ == Model::Kind::word_piece;
    if (kind_ == Model::Kind::bytes || (is_piece && first)) return {false, vocabulary_[id], false};
    const auto begin = static_cast<size_t>(texts_.offsets[id]);
    const auto size = static_cast<size_t>(texts_.offsets[id + 1]) - begin;
    return {is_piece && !has_affix_[id], Bytes(texts_.data).subspan(begin, size),
            !is_piece && has_affix_[id] && !last};
  }

  const Vocabulary& vocabulary_;
  Model::Kind kind_;
  bool drops_space_;
  std::vector<bool> has_affix_;
  ByteStrings texts_;  // the tokens as texts hold them; none for a model of bytes
};

}  // namespace bpe
