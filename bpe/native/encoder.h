// Texts to token ids and back.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "decoder.h"
#include "id_array.h"
#include "merge_table.h"
#include "merger.h"
#include "model.h"
#include "random.h"
#include "scanner.h"
#include "special.h"
#include "symbols.h"
#include "text_column.h"
#include "vocabulary.h"
#include "word_cache.h"
#include "word_pieces.h"

namespace bpe {

// Immutable once made: any number of threads may encode at once, each in a workspace of its own.
class Encoder {
 public:
  using Bytes = std::span<const uint8_t>;

  // merges: (left, right, result) ids, the first merge first; none for WordPiece. special: ids
  // that no text makes (they are found in it where a call allows them). Throws
  // std::invalid_argument, naming the merge or the id, unless every byte of a model of bytes has a
  // token, each merge makes the bytes of its parts and is listed once, and no special token takes
  // part in merging.
  Encoder(Vocabulary vocabulary, std::span<const uint32_t> merges,
          const std::vector<int64_t>& special, const std::string& scheme, bool whole_words,
          const Model& model)
      : vocabulary_(std::move(vocabulary)),
        is_special_(flags(special)),
        model_(model),
        symbols_(vocabulary_, model_, is_special_),
        decoder_(vocabulary_, model_, is_special_),
        merges_(merges.size() / 3),
        has_scheme_(!scheme.empty()),
        scheme_(has_scheme_ ? scheme_from_name(scheme) : Scheme::none),
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

  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // A rate above 0 drops merges at random, with a seed for each row.
  struct Noise {
    double rate = 0;
    std::span<const uint64_t> seeds;
  };

  // allowed: ids of the tokens that are cut out of the text whole, wherever they stand in it.
  EncodedRows encode(const TextColumn& column, const std::vector<int64_t>& allowed,
                     const Noise& noise) const {
    if (!has_scheme_)
      throw std::invalid_argument("this tokenizer cuts text by a pattern: encode its pieces");
    const std::shared_ptr<const Cutter> cutter = cutter_for(allowed);
    return with_scheme(scheme_, [&](auto scheme) {
      return encode_rows(column.rows(), noise, [&](size_t row, Run& run) {
        encode_text<decltype(scheme)::value>(column[row], *cutter, run);
      });
    });
  }

  // What stands in a piece instead of the id of a token.
  static constexpr int64_t kText = -1;   // text
  static constexpr int64_t kWhole = -2;  // a pre-token in which nothing merges

  // Text that was cut elsewhere: pieces (begin, end, id of a token, kText or kWhole); row_ends: for
  // each row the number of pieces up to and including it. A piece of text is one pre-token, or, if
  // `cut` says so, is cut here.
  EncodedRows encode_pieces(Bytes data, std::span<const int64_t> pieces,
                            std::span<const int64_t> row_ends, bool cut, const Noise& noise) const {
    check_pieces(data, pieces, row_ends);
    if (cut && !has_scheme_)
      throw std::invalid_argument("this tokenizer cuts text by a pattern: cut its pieces before");
    const uint8_t* const readable = data.data() + data.size();
    return encode_rows(row_ends.size(), noise, [&](size_t row, Run& run) {
      Words words(*this, readable, run);
      const auto first = static_cast<size_t>(row == 0 ? 0 : row_ends[row - 1]);
      const auto last = static_cast<size_t>(row_ends[row]);
      for (size_t piece = first; piece < last; ++piece) {
        const Bytes bytes(data.data() + pieces[3 * piece], data.data() + pieces[3 * piece + 1]);
        int64_t id = pieces[3 * piece + 2];
        if (id == kWhole) id = whole_token(bytes);
        if (id == kText && !cut) {
          if (!bytes.empty()) words.push(bytes.data(), bytes.data() + bytes.size());
          continue;
        }
        words.flush();
        if (id == kText) {
          with_scheme(scheme_, [&](auto scheme) {
            encode_segment<decltype(scheme)::value>(bytes, readable, run);
          });
        } else {
          run.ids.push_back(checked(id));
        }
      }
      words.flush();
    });
  }

  // As Decoder::decode, without the ids in `skipped`.
  DecodedRows decode(std::span<const uint32_t> ids, std::span<const int64_t> offsets,
                     const std::vector<int64_t>& skipped) const {
    return decoder_.decode(ids, offsets, skipped.empty() ? std::vector<bool>() : flags(skipped));
  }

 private:
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

  // A workspace for the time of one call: taken from those that lie idle, or made.
  class Lease {
   public:
    explicit Lease(const Encoder& encoder) : encoder_(encoder) {
      const std::lock_guard lock(encoder_.mutex_);
      if (encoder_.idle_.empty()) {
        workspace_ = std::make_unique<Workspace>();
      } else {
        workspace_ = std::move(encoder_.idle_.back());
        encoder_.idle_.pop_back();
      }
    }
    ~Lease() {
      const std::lock_guard lock(encoder_.mutex_);
      encoder_.idle_.push_back(std::move(workspace_));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Workspace& operator*() const { return *workspace_; }

   private:
    const Encoder& encoder_;
    std::unique_ptr<Workspace> workspace_;
  };

  // The tokens that a call cuts out of its texts, and the matcher that finds them.
  struct Cutter {
    std::vector<int64_t> ids;
    SpecialMatcher matcher;
  };

  std::vector<bool> flags(const std::vector<int64_t>& ids) const {
    std::vector<bool> flags(vocabulary_.size(), false);
    for (const int64_t id : ids) flags[checked(id)] = true;
    return flags;
  }

  uint32_t checked(int64_t id) const {
    if (id < 0 || !vocabulary_.has(static_cast<uint64_t>(id)))
      throw std::invalid_argument("no token has the id " + std::to_string(id));
    return static_cast<uint32_t>(id);
  }

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

  // Calls that allow the same tokens follow each other: the last matcher is kept.
  std::shared_ptr<const Cutter> cutter_for(const std::vector<int64_t>& allowed) const {
    {
      const std::lock_guard lock(mutex_);
      if (cutter_ && cutter_->ids == allowed) return cutter_;
    }
    std::vector<std::string> tokens;
    for (const int64_t id : allowed) {
      const Bytes token = vocabulary_[checked(id)];
      tokens.emplace_back(token.begin(), token.end());
    }
    auto made = std::make_shared<const Cutter>(Cutter{allowed, SpecialMatcher(std::move(tokens))});
    const std::lock_guard lock(mutex_);
    cutter_ = made;
    return made;
  }

  static void check_pieces(Bytes data, std::span<const int64_t> pieces,
                           std::span<const int64_t> row_ends) {
    if (pieces.size() % 3 != 0)
      throw std::invalid_argument("pieces are not triples of begin, end, id");
    const size_t count = pieces.size() / 3;
    for (size_t piece = 0; piece < count; ++piece) {
      const int64_t begin = pieces[3 * piece], end = pieces[3 * piece + 1];
      if (begin < 0 || end < begin || static_cast<uint64_t>(end) > data.size())
        throw std::invalid_argument("piece " + std::to_string(piece) + " lies outside the data");
    }
    int64_t last = 0;
    for (const int64_t row_end : row_ends) {
      if (row_end < last || static_cast<uint64_t>(row_end) > count)
        throw std::invalid_argument("row_ends do not ascend within the pieces");
      last = row_end;
    }
    if (static_cast<uint64_t>(last) != count)
      throw std::invalid_argument("pieces are left over after the last row");
  }

  // Encodes each row with encode_row(row, run).
  template <typename EncodeRow>
  EncodedRows encode_rows(size_t rows, const Noise& noise, EncodeRow encode_row) const {
    const bool is_noisy = noise.rate > 0;
    if (is_noisy && word_pieces_)
      throw std::invalid_argument("WordPiece has no merges that could be dropped");
    if (is_noisy && noise.seeds.size() != rows)
      throw std::invalid_argument("there is not one seed for each row");
    const Lease workspace(*this);
    EncodedRows encoded;
    encoded.offsets.reserve(rows + 1);
    Run run{*workspace, encoded.ids, std::nullopt};
    for (size_t row = 0; row < rows; ++row) {
      if (is_noisy) run.dropout.emplace(noise.rate, noise.seeds[row]);
      encoded.add([&] { encode_row(row, run); });
    }
    return encoded;
  }

  template <Scheme S>
  void encode_text(Bytes text, const Cutter& cutter, Run& run) const {
    const uint8_t* p = text.data();
    const uint8_t* const end = p + text.size();
    while (p != end) {
      size_t which = 0;
      const uint8_t* const cut = cutter.matcher.find(p, end, which);
      encode_segment<S>({p, cut}, end, run);
      if (cut == end) return;
      run.ids.push_back(static_cast<uint32_t>(cutter.ids[which]));
      p = cut + cutter.matcher.tokens()[which].size();
    }
  }

  // Never inlined: with one caller alone, the compiler inlines the scanner here.
  template <Scheme S>
  [[gnu::noinline]] void encode_segment(Bytes text, const uint8_t* readable, Run& run) const {
    Words words(*this, readable, run);
    Scanner<S> scanner(text.data(), text.data() + text.size());
    const uint8_t *piece, *piece_end;
    while (scanner.next(piece, piece_end)) words.push(piece, piece_end);
    words.flush();
  }

  // Pre-tokens on their way to the cache: while some are gathered, the entries of the first ones
  // come from memory.
  class Words {
   public:
    // Pre-tokens, and the bytes behind them up to `readable`, may be read.
    Words(const Encoder& encoder, const uint8_t* readable, Run& run)
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

    const Encoder& encoder_;
    const size_t direct_;
    const uint8_t* readable_;
    Run& run_;
    Workspace& workspace_;
    IdArray& out_;
    size_t size_ = 0;
    std::array<Piece, 32> pieces_;
  };

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

  // The token of a pre-token in which nothing merges. Where it has none, the bytes of a model of
  // bytes are still text.
  int64_t whole_token(Bytes word) const {
    const uint32_t id = find_whole(word);
    if (id != Vocabulary::kNone) return id;
    if (model_.kind == Model::Kind::bytes) return kText;
    if (model_.unknown == Vocabulary::kNone)
      throw Unencodable{std::string(word.begin(), word.end())};
    return model_.unknown;
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
  Decoder decoder_;
  std::optional<WordPieces> word_pieces_;
  MergeTable merges_;
  bool has_scheme_;
  Scheme scheme_;
  bool whole_words_;
  size_t direct_;  // words of so many bytes are a token: 1 for a model of bytes, else 0

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Workspace>> idle_;
  mutable std::shared_ptr<const Cutter> cutter_;
};

}  // namespace bpe
