// Pre-tokens to token ids: every model's way from a word to its tokens, and the caches before it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "id_array.h"
#include "merge_table.h"
#include "merger.h"
#include "model.h"
#include "random.h"
#include "symbols.h"
#include "vocabulary.h"
#include "word_cache.h"
#include "word_pieces.h"

namespace bpe {

// Everything an encoding call writes to while it runs.
struct Workspace {
  ShortWords short_words;
  LongWords long_words;
  Merger merger;
};

// What encoding a row reads and writes.
struct Run {
  Workspace& workspace;
  IdArray& ids;
  std::optional<Dropout> dropout;
};

// Immutable once made.
class WordEncoder {
 public:
  using Bytes = std::span<const uint8_t>;

  // As Encoder's constructor.
  WordEncoder(Vocabulary vocabulary, std::span<const uint32_t> merges,
              const std::vector<int64_t>& special, bool whole_words, const Model& model)
      : vocabulary_(std::move(vocabulary)),
        is_special_(flags(special)),
        model_(model),
        symbols_(vocabulary_, model_, is_special_),
        merges_(merges.size() / 3),
        whole_words_(whole_words),
        direct_(model_.kind == Model::Kind::bytes ? 1 : 0) {
    if (model_.unknown != Vocabulary::kNone) checked(model_.unknown);
    if (model_.kind == Model::Kind::word_piece)
      word_pieces_.emplace(vocabulary_, model_, is_special_);
    if (merges.size() % 3 != 0)
      throw std::invalid_argument("merges are not triples of left, right, result");
    for (size_t i = 0; i < merges.size(); i += 3)
      add_merge(i / 3, merges[i], merges[i + 1], merges[i + 2]);
  }

  WordEncoder(const WordEncoder&) = delete;
  WordEncoder& operator=(const WordEncoder&) = delete;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const std::vector<bool>& is_special() const { return is_special_; }
  const Model& model() const { return model_; }

  // An id that a token has. Throws std::invalid_argument on others.
  uint32_t checked(int64_t id) const {
    if (id < 0 || !vocabulary_.has(static_cast<uint64_t>(id)))
      throw std::invalid_argument("no token has the id " + std::to_string(id));
    return static_cast<uint32_t>(id);
  }

  // Whether each id is among these.
  std::vector<bool> flags(const std::vector<int64_t>& ids) const {
    std::vector<bool> flags(vocabulary_.size(), false);
    for (const int64_t id : ids) flags[checked(id)] = true;
    return flags;
  }

  static constexpr int64_t kNotWhole = -1;

  // The token of a pre-token in which nothing merges. Throws Unencodable where it has none, but
  // for a model of bytes: there it is kNotWhole, and the pre-token is encoded as any other.
  int64_t whole_token(Bytes word) const {
    const uint32_t id = find_whole(word);
    if (id != Vocabulary::kNone) return id;
    if (model_.kind == Model::Kind::bytes) return kNotWhole;
    if (model_.unknown == Vocabulary::kNone)
      throw Unencodable{std::string(word.begin(), word.end())};
    return model_.unknown;
  }

  // Pre-tokens on their way to the cache: while some are gathered, the entries of the first ones
  // come from memory.
  class Words {
   public:
    // Pre-tokens, and the bytes behind them up to `readable`, may be read.
    Words(const WordEncoder& encoder, const uint8_t* readable, Run& run)
        : encoder_(encoder),
          direct_(encoder.direct_),
          readable_(readable),
          run_(run),
          workspace_(run.workspace),
          out_(run.ids) {}

    // [begin, end) is not empty.
    void push(const uint8_t* begin, const uint8_t* end) {
      Piece& piece = pieces_[size_];
      piece.begin = begin;
      piece.size = static_cast<size_t>(end - begin);
      if (piece.size > direct_ && piece.size <= ShortWords::kMaxBytes) {
        piece.key = workspace_.short_words.key(begin, piece.size, readable_);
        workspace_.short_words.prefetch(piece.key);
      }
      if (++size_ == pieces_.size()) flush();
    }

    void flush() {
      if (run_.dropout) {
        for (size_t i = 0; i < size_; ++i)
          encoder_.encode_with_dropout({pieces_[i].begin, pieces_[i].size}, run_);
      } else {
        for (size_t i = 0; i < size_; ++i) encode(pieces_[i]);
      }
      size_ = 0;
    }

   private:
    struct Piece {
      const uint8_t* begin;
      size_t size;
      ShortWords::Key key;
    };

    void encode(const Piece& piece) {
      if (piece.size <= direct_) return out_.push_back(encoder_.symbols_.of_byte(*piece.begin));
      if (piece.size > ShortWords::kMaxBytes) {
        encode_long(piece);
        return;
      }
      uint32_t* const ids = out_.reserve(ShortWords::kMaxIds);
      if (const size_t known = workspace_.short_words.lookup(piece.key, ids)) {
        out_.advance(known);
        return;
      }
      const size_t count = encode_long(piece);
      if (count <= ShortWords::kMaxIds)
        workspace_.short_words.insert(piece.key, out_.last(count), count);
    }

    // Words that are too long for the first cache, or have too many ids for it.
    size_t encode_long(const Piece& piece) {
      LongWords& cache = workspace_.long_words;
      if (piece.size > LongWords::kMaxBytes)
        return encoder_.encode_word({piece.begin, piece.size}, workspace_, out_);
      const LongWords::Key key = cache.key(piece.begin, piece.size, readable_);
      if (const size_t known = cache.lookup(key, out_.reserve(LongWords::kMaxIds))) {
        out_.advance(known);
        return known;
      }
      const size_t count = encoder_.encode_word({piece.begin, piece.size}, workspace_, out_);
      const bool is_short = piece.size <= ShortWords::kMaxBytes && count <= ShortWords::kMaxIds;
      if (!is_short && count <= LongWords::kMaxIds) cache.insert(key, out_.last(count), count);
      return count;
    }

    const WordEncoder& encoder_;
    const size_t direct_;
    const uint8_t* readable_;
    Run& run_;
    Workspace& workspace_;
    IdArray& out_;
    size_t size_ = 0;
    std::array<Piece, 32> pieces_;
  };

 private:
  void add_merge(size_t number, uint32_t left, uint32_t right, uint32_t result) {
    const auto fail = [&](const std::string& what) {
      throw std::invalid_argument("merge " + std::to_string(number) + " (" + std::to_string(left) +
                                  ", " + std::to_string(right) + " -> " + std::to_string(result) +
                                  "): " + what);
    };
    for (const uint32_t id : {left, right, result}) {
      if (!vocabulary_.has(id)) fail("no token has the id " + std::to_string(id));
      if (is_special_[id]) fail("id " + std::to_string(id) + " is a special token");
    }
    const Bytes a = vocabulary_[left], b = vocabulary_[right], made = vocabulary_[result];
    if (made.size() != a.size() + b.size() || !std::ranges::equal(made.first(a.size()), a) ||
        !std::ranges::equal(made.last(b.size()), b))
      fail("the result is not the bytes of left and right");
    if (!merges_.insert(left, right, pack_merge(static_cast<uint32_t>(number), result)))
      fail("the pair is merged twice");
  }

  // Appends the ids of a pre-token; returns how many.
  size_t encode_word(Bytes word, Workspace& workspace, IdArray& out) const {
    if (word_pieces_) return word_pieces_->encode(word, out);
    if (whole_words_) {
      const uint32_t id = find_whole(word);
      if (id != Vocabulary::kNone) {
        out.push_back(id);
        return 1;
      }
    }
    uint32_t* const symbols = out.reserve(symbols_.most(word.size()));
    const size_t count = workspace.merger.merge(merges_, symbols, symbols_.write(word, symbols));
    out.advance(count);
    return count;
  }

  // The same where merges are dropped at random: no word encodes as it did before.
  void encode_with_dropout(Bytes word, Run& run) const {
    uint32_t* const symbols = run.ids.reserve(symbols_.most(word.size()));
    const size_t size = symbols_.write(word, symbols);
    run.ids.advance(run.workspace.merger.merge_with_dropout(merges_, symbols, size,
                                                            [&] { return run.dropout->drops(); }));
  }

  // The token that is a whole pre-token, or kNone.
  uint32_t find_whole(Bytes word) const {
    uint32_t id;
    if (model_.kind == Model::Kind::characters && !model_.affix.empty()) {
      id = vocabulary_.find(bytes_of(std::string(word.begin(), word.end()) + model_.affix));
    } else {
      id = vocabulary_.find(word);
    }
    return id != Vocabulary::kNone && is_special_[id] ? Vocabulary::kNone : id;
  }

  Vocabulary vocabulary_;
  std::vector<bool> is_special_;
  Model model_;
  Symbols symbols_;
  std::optional<WordPieces> word_pieces_;
  MergeTable merges_;
  bool whole_words_;
  size_t direct_;  // words of so many bytes are a token: 1 for a model of bytes, else 0
};

}  // namespace bpe
