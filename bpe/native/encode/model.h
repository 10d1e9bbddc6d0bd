// What the models differ in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "encode/vocabulary.h"

namespace bpe {

struct Model {
  enum class Kind { bytes, characters, word_piece };

  Kind kind = Kind::bytes;
  std::string affix;                     // the end of a word, or the prefix of what continues one
  uint32_t unknown = Vocabulary::kNone;  // the token of what has none
  size_t max_characters = 0;             // WordPiece: longer words are unknown
};

inline Model::Kind model_from_name(const std::string& name) {
  if (name == "bytes") return Model::Kind::bytes;
  if (name == "characters") return Model::Kind::characters;
  if (name == "word_piece") return Model::Kind::word_piece;
  throw std::invalid_argument("unknown model '" + name + "'");
}

inline std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace bpe
