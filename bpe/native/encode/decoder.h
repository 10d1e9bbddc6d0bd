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
  // is_special: tokens that represent themselves, whatever they end in.
  Decoder(const Vocabulary& vocabulary, const Model& model, const std::vector<bool>& is_special)
      : vocabulary_(vocabulary), kind_(model.kind), drops_space_(model.drops_space) {
    ends_word_.resize(vocabulary.size());
    if (kind_ == Model::Kind::bytes) return;
    std::vector<std::string> names;  // of the tokens of bytes
    for (int byte = 0; model.byte_fallback && byte < 256; ++byte)
      names.push_back(byte_token(static_cast<uint8_t>(byte)));
    for (uint32_t id = 0; id < vocabulary.size(); ++id) {
      std::string text(chars_of(vocabulary[id]));
      if (kind_ == Model::Kind::word_piece) {
        text = text.starts_with(model.affix) ? text.substr(model.affix.size()) : ' ' + text;
      } else {
        ends_word_[id] = !is_special[id] && !model.affix.empty() && text.ends_with(model.affix);
        if (ends_word_[id]) text.resize(text.size() - model.affix.size());
        spell(model, names, text);
        if (ends_word_[id]) text += ' ';
      }
      texts_.add(bytes_of(text));
    }
  }

  // Rows of ids, each [offsets[i], offsets[i + 1]) of them. Throws std::invalid_argument naming row
  // and id where an id has no token. Ids that `skipped` flags are left out.
  ByteStrings decode(std::span<const uint32_t> ids, std::span<const int64_t> offsets,
                     const std::vector<bool>& skipped) const {
    ByteStrings rows;
    rows.data.reserve(checked_size(ids, offsets));
    for (size_t row = 0; row + 1 < offsets.size(); ++row) {
      bool is_first = true, ends_word = false;
      for (const uint32_t id : row_of(ids, offsets, row)) {
        if (!skipped.empty() && skipped[id]) continue;
        ends_word = ends_word_[id];
        Bytes text = text_of(id, is_first);
        if (is_first && drops_space_ && text.size() > ends_word && text[0] == ' ')
          text = text.subspan(1);
        rows.data.insert(rows.data.end(), text.begin(), text.end());
        is_first = false;
      }
      if (ends_word) rows.data.pop_back();
      rows.end();
    }
    return rows;
  }

 private:
  Bytes text_of(uint32_t id, bool is_first) const {
    if (kind_ == Model::Kind::bytes) return vocabulary_[id];
    return is_first && kind_ == Model::Kind::word_piece ? vocabulary_[id] : texts_[id];
  }

  // Makes a token without the end of a word what texts hold of it.
  static void spell(const Model& model, const std::vector<std::string>& names, std::string& text) {
    if (const auto name = std::ranges::find(names, text); name != names.end())
      text.assign(1, static_cast<char>(name - names.begin()));
    const size_t size = model.mark.size();
    for (size_t at = 0; size != 0 && (at = text.find(model.mark, at)) != text.npos; ++at)
      text.replace(at, size, 1, ' ');
  }

  // The bytes of checked rows, or some more.
  size_t checked_size(std::span<const uint32_t> ids, std::span<const int64_t> offsets) const {
    int64_t at = 0;
    size_t size = 0;
    for (size_t row = 0; row + 1 < offsets.size(); ++row) {
      if (offsets[row] != at || offsets[row + 1] < at ||
          static_cast<uint64_t>(offsets[row + 1]) > ids.size())
        throw std::invalid_argument("the offsets of the ids do not ascend from 0 within them");
      at = offsets[row + 1];
      for (const uint32_t id : row_of(ids, offsets, row)) {
        if (!vocabulary_.has(id))
          throw std::invalid_argument("row " + std::to_string(row) + ": no token has the id " +
                                      std::to_string(id));
        size += std::max(text_of(id, true).size(), text_of(id, false).size());
      }
    }
    return size;
  }

  static std::span<const uint32_t> row_of(std::span<const uint32_t> ids,
                                          std::span<const int64_t> offsets, size_t row) {
    return ids.subspan(static_cast<size_t>(offsets[row]),
                       static_cast<size_t>(offsets[row + 1] - offsets[row]));
  }

  const Vocabulary& vocabulary_;
  Model::Kind kind_;
  bool drops_space_;
  ByteStrings texts_;  // the tokens as texts hold them, with the spaces next to them
  std::vector<bool>
      ends_word_;  // the last byte of the text is a space, but not at the end of a row
};

}  // namespace bpe
