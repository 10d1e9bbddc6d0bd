// WordPiece: the longest token that a word begins with, then the longest of the rest, and so on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "encode/model.h"
#include "encode/vocabulary.h"
#include "table/trie.h"
#include "text/utf8.h"

namespace bpe {

// Two tries over bytes, of the tokens that begin a word and, without their prefix, of those that
// continue one. A search takes one step a byte and ends where no token goes on, so a word takes its
// length times that of the longest token, whatever it holds. Tokens are well-formed UTF-8: they
// match whole characters, and no malformed byte.
class WordPieces {
 public:
  // Tokens that are special are not looked for.
  WordPieces(const Vocabulary& vocabulary, const Model& model, const std::vector<bool>& is_special)
      : unknown_(model.unknown),
        max_characters_(model.max_characters),
        trie_(kNext + 1, 2 * vocabulary.bytes()),
        token_(kNext + 1, Vocabulary::kNone) {
    const Bytes prefix = bytes_of(model.affix);
    for (uint32_t id = 0; id < vocabulary.size(); ++id) {
      if (!vocabulary.has(id) || is_special[id]) continue;
      const Bytes token = vocabulary[id];
      insert(kFirst, token, id);
      if (continues(token, prefix)) insert(kNext, token.subspan(prefix.size()), id);
    }
  }

  // The ids of a word that is not empty.
  void encode(Bytes word, std::vector<uint32_t>& out) const {
    out.clear();
    const uint8_t* p = word.data();
    const uint8_t* const end = p + word.size();
    uint32_t root = kFirst;
    bool known = !is_long(word);
    while (known && p != end) {
      const Match match = longest(root, p, end);
      known = match.id != Vocabulary::kNone;
      if (known) out.push_back(match.id);
      p = match.end;
      root = kNext;
    }
    if (!known) out.assign(1, unknown_);
  }

 private:
  static constexpr uint32_t kFirst = 0;  // the nodes where the two tries begin
  static constexpr uint32_t kNext = 1;

  struct Match {
    uint32_t id;
    const uint8_t* end;
  };

  static bool continues(Bytes token, Bytes prefix) {
    return token.size() > prefix.size() && std::ranges::equal(token.first(prefix.size()), prefix);
  }

  bool is_long(Bytes word) const {
    if (word.size() <= max_characters_) return false;
    size_t characters = 0;
    const uint8_t* const end = word.data() + word.size();
    for (const uint8_t* p = word.data(); p != end && characters <= max_characters_; ++characters)
      p += decode_utf8(p, end).size;
    return characters > max_characters_;
  }

  Match longest(uint32_t root, const uint8_t* p, const uint8_t* end) const {
    Match match{Vocabulary::kNone, p};
    for (uint32_t node = root; p != end;) {
      node = trie_.child(node, *p++);
      if (node == Trie::kNone) break;
      if (token_[node] != Vocabulary::kNone) match = {token_[node], p};
    }
    return match;
  }

  void insert(uint32_t node, Bytes token, uint32_t id) {
    for (const uint8_t byte : token) node = trie_.find_or_add(node, byte);
    token_.resize(trie_.size(), Vocabulary::kNone);
    token_[node] = id;
  }

  uint32_t unknown_;
  size_t max_characters_;
  Trie trie_;
  std::vector<uint32_t> token_;  // that ends in each node
};

}  // namespace bpe
