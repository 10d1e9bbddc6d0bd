// Pre-tokens to token ids: every model's way from a word to its tokens, and the caches before it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "encode/characters.h"
#include "encode/encoded_rows.h"
#include "encode/listed_merges.h"
#include "encode/marks.h"
#include "encode/merger.h"
#include "encode/model.h"
#include "encode/symbols.h"
#include "encode/vocabulary.h"
#include "encode/word_cache.h"
#include "encode/word_pieces.h"
#include "table/merge_table.h"
#include "text/never_split.h"

namespace bpe {

// Everything an encoding call writes to while it runs.
struct Workspace {
  // As WordCache's constructor.
  Workspace(size_t words, size_t ids) : cache(words, ids) {}

  WordCache cache;
  bool knows_tokens = false;  // whether all words that are tokens, but for huge ones, were in it
  Merger merger;
  std::vector<uint32_t> symbols;  // of a word, then its ids
};

// Immutable once made.
class WordEncoder {
 public:
  // As Encoder's constructor. is_alone: tokens that superwords alone make; empty where none do.
  WordEncoder(Vocabulary vocabulary, std::span<const uint32_t> merges,
              const std::vector<int64_t>& special, const std::vector<bool>& is_alone,
              bool whole_words, const Model& model, std::vector<uint8_t> marks,
              NeverSplit never_split)
      : vocabulary_(std::move(vocabulary)),
        is_special_(vocabulary_.flags(special)),
        model_(model),
        symbols_(vocabulary_, model_, is_special_),
        merges_(merge_table(vocabulary_, is_special_, merges, "merge")),
        whole_words_(whole_words),
        marks_(std::move(marks), vocabulary_.size()),
        never_split_(std::move(never_split)) {
    for (size_t id = 0; id < is_alone.size(); ++id)
      if (is_alone[id]) is_special_[id] = true;
    if (model_.unknown != Vocabulary::kNone) vocabulary_.checked(model_.unknown);
    if (model_.kind == Model::Kind::word_piece)
      word_pieces_.emplace(vocabulary_, model_, is_special_);
    if (model_.kind == Model::Kind::bytes)
      characters_.emplace(vocabulary_, symbols_.of_byte(), merges_, merges);
  }

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const std::vector<bool>& is_special() const { return is_special_; }
  const Model& model() const { return model_; }

  // Sets `ids` to the token of a pre-token in which nothing merges. Throws Unencodable where it has
  // none, but for a model in which each byte has a token: there this is false, and the pre-token is
  // encoded as any other.
  bool find_whole(Bytes word, std::vector<uint32_t>& ids) const {
    uint32_t id = find_token(word);
    if (id == Vocabulary::kNone) {
      if (model_.kind == Model::Kind::bytes || model_.byte_fallback) return false;
      id = model_.unknown;
    }
    if (id == Vocabulary::kNone) throw Unencodable(word);
    ids.assign(1, id);
    return true;
  }

  // A workspace whose cache holds the tokens that are sure to encode to themselves, which are most
  // words of a text.
  std::unique_ptr<Workspace> new_workspace() const {
    const bool holds_tokens = whole_words_ && model_.kind == Model::Kind::bytes;
    const size_t ids = marks_.empty() ? vocabulary_.size() : size_t{1} << 32;
    auto workspace = std::make_unique<Workspace>(holds_tokens ? vocabulary_.size() : 0, ids);
    if (model_.kind != Model::Kind::bytes) return workspace;
    const size_t longest = whole_words_ ? WordCache::kMaxBytes : 1;
    workspace->knows_tokens = whole_words_;
    size_t known = 0;
    for (uint32_t id = 0; id < vocabulary_.size(); ++id) {
      const Bytes token = vocabulary_[id];
      if (token.empty() || token.size() > longest || is_special_[id]) continue;
      if (++known > WordCache::kMostWords) {
        workspace->knows_tokens = false;
        break;
      }
      const uint8_t* const end = token.data() + token.size();
      const bool is_marked = !marks_.empty() && !never_split_.matches(token);
      workspace->cache.insert_token(workspace->cache.key(token.data(), token.size(), end), token,
                                    is_marked ? marks_.marked(id) : id);
    }
    return workspace;
  }

  // The ids of a pre-token, marked where it is one; they are in the workspace. `may_be_token`: it
  // is not sure that the pre-token as a whole is none. Where merges are dropped at random, no word
  // encodes as it did before.
  std::span<const uint32_t> encode(Bytes word, bool may_be_token, Workspace& workspace) const {
    std::vector<uint32_t>& symbols = workspace.symbols;
    if (never_split_.matches(word) && find_whole(word, symbols)) return symbols;
    if (word_pieces_) {
      word_pieces_->encode(word, symbols);
      return symbols;
    }
    const bool drops = workspace.merger.dropout.has_value();
    if (whole_words_ && may_be_token && !drops) {
      const uint32_t id = find_token(word);
      if (id != Vocabulary::kNone) {
        symbols.assign(1, marks_.marked(id));
        return symbols;
      }
    }
    resize(symbols, Symbols::most(word.size()));
    const size_t size = characters_ && !drops ? characters_->write(word, symbols.data())
                                              : symbols_.write(word, symbols.data());
    const size_t left = workspace.merger.merge(merges_, symbols.data(), size);
    if (left == 1) symbols[0] = marks_.marked(symbols[0]);
    return {symbols.data(), left};
  }

 private:
  // Memory for the symbols of a word; that of a huge word is given back with the next one.
  static void resize(std::vector<uint32_t>& symbols, size_t size) {
    constexpr size_t kKeep = size_t{1} << 20;
    if (symbols.size() > std::max(size, kKeep)) symbols = {};
    if (symbols.size() < size) symbols.resize(size);
  }

  // The token that is a whole pre-token, or kNone.
  uint32_t find_token(Bytes word) const {
    const bool has_end = model_.kind == Model::Kind::characters && !model_.affix.empty();
    const uint32_t id = has_end
                            ? vocabulary_.find(bytes_of(std::string(chars_of(word)) + model_.affix))
                            : vocabulary_.find(word);
    return id != Vocabulary::kNone && is_special_[id] ? Vocabulary::kNone : id;
  }

  Vocabulary vocabulary_;
  std::vector<bool> is_special_;  // tokens that no pre-token is
  Model model_;
  Symbols symbols_;
  std::optional<WordPieces> word_pieces_;
  MergeTable merges_;
  std::optional<Characters> characters_;  // for a model of bytes
  bool whole_words_;
  Marks marks_;
  NeverSplit never_split_;
};

}  // namespace bpe
