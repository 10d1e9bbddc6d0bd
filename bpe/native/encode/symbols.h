// What a pre-token consists of before it is merged: its bytes, or its characters and its end. A
// character without a token is the unknown one, or a token for each of its bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "encode/encoded_rows.h"
#include "encode/model.h"
#include "encode/vocabulary.h"
#include "table/zeroed_array.h"
#include "text/utf8.h"

namespace bpe {

class Symbols {
 public:
  // is_special: tokens that no text makes. Throws std::invalid_argument where a byte of a model
  // that needs it, or the end of a word, has no other token.
  Symbols(const Vocabulary& vocabulary, const Model& model, const std::vector<bool>& is_special)
      : unknown_(model.unknown), falls_back_(model.byte_fallback), fuses_(model.fuse_unknown) {
    const auto find = [&](const std::string& token) {
      const uint32_t id = vocabulary.find(bytes_of(token));
      return id != Vocabulary::kNone && is_special[id] ? Vocabulary::kNone : id;
    };
    const bool is_bytes = model.kind == Model::Kind::bytes;
    for (size_t byte = 0; (is_bytes || falls_back_) && byte < of_byte_.size(); ++byte) {
      const std::string name = byte_token(static_cast<uint8_t>(byte));
      of_byte_[byte] = find(is_bytes ? std::string(1, static_cast<char>(byte)) : name);
      if (of_byte_[byte] != Vocabulary::kNone) continue;
      if (!is_bytes)
        throw std::invalid_argument("no token is " + name +
                                    "; byte fallback needs one for each of the 256 bytes");
      throw std::invalid_argument("no token is the single byte " + std::to_string(byte) +
                                  "; a byte-level vocabulary has all 256");
    }
    if (model.kind != Model::Kind::characters) return;
    of_character_ = ZeroedArray<uint32_t>(kCodePoints);
    for (uint32_t id = 0; id < vocabulary.size(); ++id)
      if (vocabulary.has(id) && !is_special[id]) add_character(vocabulary[id], id);
    if (model.affix.empty()) return;
    end_ = find(model.affix);
    if (end_ == Vocabulary::kNone)
      throw std::invalid_argument("no token is the end of a word, '" + model.affix + "'");
  }

  // The token of each single byte, for a model of bytes.
  const std::array<uint32_t, 256>& of_byte() const { return of_byte_; }

  // Symbols that a word of so many bytes has at most.
  static size_t most(size_t bytes) { return bytes + 1; }

  // Writes the symbols of a word and returns how many they are. Throws Unencodable.
  size_t write(Bytes word, uint32_t* out) const {
    if (of_character_.size() == 0) {
      for (size_t i = 0; i < word.size(); ++i) out[i] = of_byte_[word[i]];
      return word.size();
    }
    uint32_t* const begin = out;
    const uint8_t* const end = word.data() + word.size();
    bool after_unknown = false;
    for (const uint8_t* p = word.data(); p != end;) {
      const Decoded step = decode_utf8(p, end);
      const uint8_t* const next = p + step.size;
      const uint32_t known = step.code_point == kMalformed ? 0 : of_character_[step.code_point];
      if (known != 0) {
        *out++ = known - 1;
      } else if (falls_back_) {
        while (p != next) *out++ = of_byte_[*p++];
      } else if (unknown_ == Vocabulary::kNone) {
        throw Unencodable({p, next});
      } else if (!(fuses_ && after_unknown)) {
        *out++ = unknown_;
      }
      after_unknown = known == 0;
      p = next;
    }
    if (end_ != Vocabulary::kNone) *out++ = end_;
    return static_cast<size_t>(out - begin);
  }

 private:
  void add_character(Bytes token, uint32_t id) {
    const Decoded step = decode_utf8(token.data(), token.data() + token.size());
    if (step.code_point != kMalformed && step.size == token.size())
      of_character_[step.code_point] = id + 1;
  }

  std::array<uint32_t, 256> of_byte_;
  ZeroedArray<uint32_t> of_character_;  // id + 1 of each code point, 0 where no token is it
  uint32_t end_ = Vocabulary::kNone;
  uint32_t unknown_;
  bool falls_back_, fuses_;
};

}  // namespace bpe
