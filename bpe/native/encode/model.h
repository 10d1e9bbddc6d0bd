// What the models differ in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "encode/vocabulary.h"
#include "table/names.h"

namespace bpe {

struct Model {
  enum class Kind { bytes, characters, word_piece };

  Kind kind = Kind::bytes;
  std::string affix = "";                // the end of a word, or the prefix of what continues one
  uint32_t unknown = Vocabulary::kNone;  // the token of what has none
  size_t max_characters = 0;             // WordPiece: longer words are unknown
  bool byte_fallback = false;            // characters without a token: a token for each byte
  bool fuse_unknown = false;             // those next to each other: one unknown token
  std::string mark = "";                 // what decodes to a space; empty for nothing
  bool drops_space = false;              // decoding drops a space that a row begins with
};

inline Model::Kind model_from_name(std::string_view name) {
  constexpr std::array<std::string_view, 3> names{"bytes", "characters", "word_piece"};
  return from_name<Model::Kind>(name, names, "model");
}

// How byte fallback spells a byte: <0x0A>.
inline std::string byte_token(uint8_t byte) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
}

}  // namespace bpe
