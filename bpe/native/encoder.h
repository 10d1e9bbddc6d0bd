// Texts to token ids and back.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "merge_table.h"
#include "merger.h"
#include "scanner.h"
#include "special.h"
#include "text_column.h"
#include "vocabulary.h"
#include "word_cache.h"

namespace bpe {

// A growing array of ids that a caller may write into past its end, and that leaves unused memory
// behind when it is done. (std::vector can do neither.)
class IdArray {
 public:
  // Where the next id goes; there is room for `count` of them.
  uint32_t* reserve(size_t count) {
    if (capacity_ - size_ < count) grow(size_ + count);
    return data_.get() + size_;
  }
  void advance(size_t count) { size_ += count; }
  void push_back(uint32_t id) {
    *reserve(1) = id;
    ++size_;
  }
  const uint32_t* last(size_t count) const { return data_.get() + size_ - count; }

  size_t size() const { return size_; }
  std::shared_ptr<uint32_t[]> finish() {
    resize(std::max<size_t>(size_, 1));
    return std::shared_ptr<uint32_t[]>(data_.release(), std::free);
  }

 private:
  struct Free {
    void operator()(uint32_t* p) const { std::free(p); }
  };

  void grow(size_t least) { resize(std::max(least, capacity_ + capacity_ / 2 + 64)); }
  void resize(size_t capacity) {
    void* moved = std::realloc(data_.get(), capacity * sizeof(uint32_t));
    if (!moved) throw std::bad_alloc();
    static_cast<void>(data_.release());
    data_.reset(static_cast<uint32_t*>(moved));
    capacity_ = capacity;
  }

  std::unique_ptr<uint32_t[], Free> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

struct EncodedRows {
  IdArray ids;
  std::vector<int64_t> offsets{0};  // row i: ids [offsets[i], offsets[i + 1])

  void end_row() { offsets.push_back(static_cast<int64_t>(ids.size())); }
};

struct DecodedRows {
  std::vector<uint8_t> data;
  std::vector<int64_t> offsets{0};
};

// Immutable once made: any number of threads may encode at once, each in a workspace of its own.
class Encoder {
 public:
  using Bytes = std::span<const uint8_t>;

  // merges: (left, right, result) ids, the first merge first. special: ids that no text makes
  // (they are found in it where a call allows them). Throws std::invalid_argument, naming the
  // merge or the id, unless every byte has a token, each merge makes the bytes of its parts and
  // is listed once, and no special token takes part in merging.
  Encoder(Vocabulary vocabulary, std::span<const uint32_t> merges,
          const std::vector<int64_t>& special, const std::string& scheme, bool whole_words)
      : vocabulary_(std::move(vocabulary)),
        byte_ids_(vocabulary_.byte_ids()),
        is_special_(vocabulary_.size(), false),
        merges_(merges.size() / 3),
        has_scheme_(!scheme.empty()),
        scheme_(has_scheme_ ? scheme_from_name(scheme) : Scheme::none),
        whole_words_(whole_words) {
    for (const int64_t id : special) is_special_[checked(id)] = true;
    for (size_t byte = 0; byte < 256; ++byte)
      if (byte_ids_[byte] == Vocabulary::kNone || is_special_[byte_ids_[byte]])
        throw std::invalid_argument("no token is the single byte " + std::to_string(byte) +
                                    "; a byte-level vocabulary has all 256");
    if (merges.size() % 3 != 0)
      throw std::invalid_argument("merges are not triples of left, right, result");
    for (size_t i = 0; i < merges.size(); i += 3)
      add_merge(i / 3, merges[i], merges[i + 1], merges[i + 2]);
  }

  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // allowed: ids of the tokens that are cut out of the text whole, wherever they stand in it.
  EncodedRows encode(const TextColumn& column, const std::vector<int64_t>& allowed) const {
    if (!has_scheme_)
      throw std::invalid_argument("this tokenizer cuts text by a pattern: encode its pieces");
    const std::shared_ptr<const Cutter> cutter = cutter_for(allowed);
    const Lease workspace(*this);
    EncodedRows rows;
    rows.offsets.reserve(column.rows() + 1);
    with_scheme(scheme_, [&](auto constant) {
      for (size_t row = 0; row < column.rows(); ++row) {
        encode_text<decltype(constant)::value>(column[row], *cutter, *workspace, rows.ids);
        rows.end_row();
      }
    });
    return rows;
  }

  // Pieces that were cut elsewhere, as (begin, end, -1), or (begin, end, id) for a token that is
  // cut out whole; row_ends: for each row the number of pieces up to and including it.
  EncodedRows encode_pieces(Bytes data, std::span<const int64_t> pieces,
                            std::span<const int64_t> row_ends) const {
    if (pieces.size() % 3 != 0)
      throw std::invalid_argument("pieces are not triples of begin, end, id");
    const size_t count = pieces.size() / 3;
    const Lease workspace(*this);
    EncodedRows rows;
    rows.offsets.reserve(row_ends.size() + 1);
    Batch batch(*this, data.data() + data.size(), *workspace, rows.ids);
    size_t piece = 0;
    for (const int64_t row_end : row_ends) {
      if (row_end < 0 || static_cast<uint64_t>(row_end) < piece ||
          static_cast<uint64_t>(row_end) > count)
        throw std::invalid_argument("row_ends do not ascend within the pieces");
      for (; piece < static_cast<uint64_t>(row_end); ++piece) {
        const int64_t begin = pieces[3 * piece], end = pieces[3 * piece + 1];
        const int64_t id = pieces[3 * piece + 2];
        if (begin < 0 || end < begin || static_cast<uint64_t>(end) > data.size())
          throw std::invalid_argument("piece " + std::to_string(piece) + " lies outside the data");
        if (id >= 0) {
          batch.flush();
          rows.ids.push_back(checked(id));
        } else if (begin != end) {
          batch.push(data.data() + begin, data.data() + end);
        }
      }
      batch.flush();
      rows.end_row();
    }
    if (piece != count) throw std::invalid_argument("pieces are left over after the last row");
    return rows;
  }

  // The bytes of each row's tokens, joined. Throws std::invalid_argument naming row and id where
  // an id has no token.
  DecodedRows decode(std::span<const uint32_t> ids, std::span<const int64_t> offsets) const {
    DecodedRows rows;
    rows.offsets.reserve(std::max<size_t>(offsets.size(), 1));
    size_t total = 0, at = 0;
    for (size_t row = 0; row + 1 < offsets.size(); ++row) {
      if (offsets[row] != static_cast<int64_t>(at) || offsets[row + 1] < offsets[row] ||
          static_cast<uint64_t>(offsets[row + 1]) > ids.size())
        throw std::invalid_argument("the offsets of the ids do not ascend from 0 within them");
      for (; at < static_cast<uint64_t>(offsets[row + 1]); ++at) {
        if (!vocabulary_.has(ids[at]))
          throw std::invalid_argument("row " + std::to_string(row) + ": no token has the id " +
                                      std::to_string(ids[at]));
        total += vocabulary_[ids[at]].size();
      }
      rows.offsets.push_back(static_cast<int64_t>(total));
    }
    rows.data.resize(total);
    uint8_t* out = rows.data.data();
    for (const uint32_t id : ids.first(at)) {
      const Bytes token = vocabulary_[id];
      std::memcpy(out, token.data(), token.size());
      out += token.size();
    }
    return rows;
  }

 private:
  // Everything an encoding call writes to while it runs.
  struct Workspace {
    ShortWords short_words;
    LongWords long_words;
    Merger merger;
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

  template <Scheme S>
  void encode_text(Bytes text, const Cutter& cutter, Workspace& workspace, IdArray& out) const {
    const uint8_t* p = text.data();
    const uint8_t* const end = p + text.size();
    while (p != end) {
      size_t which = 0;
      const uint8_t* const cut = cutter.matcher.find(p, end, which);
      Batch batch(*this, end, workspace, out);
      Scanner<S> scanner(p, cut);
      const uint8_t *piece, *piece_end;
      while (scanner.next(piece, piece_end)) batch.push(piece, piece_end);
      batch.flush();
      if (cut == end) return;
      out.push_back(static_cast<uint32_t>(cutter.ids[which]));
      p = cut + cutter.matcher.tokens()[which].size();
    }
  }

  // Pieces on their way to the cache: while some are gathered, the entries of the first ones come
  // from memory.
  class Batch {
   public:
    // The bytes of pieces and behind them up to `readable` may be read.
    Batch(const Encoder& encoder, const uint8_t* readable, Workspace& workspace, IdArray& out)
        : encoder_(encoder), readable_(readable), workspace_(workspace), out_(out) {}

    // [begin, end) is not empty.
    void push(const uint8_t* begin, const uint8_t* end) {
      Piece& piece = pieces_[size_];
      piece.begin = begin;
      piece.size = static_cast<size_t>(end - begin);
      if (piece.size > 1 && piece.size <= ShortWords::kMaxBytes) {
        piece.key = workspace_.short_words.key(begin, piece.size, readable_);
        workspace_.short_words.prefetch(piece.key);
      }
      if (++size_ == pieces_.size()) flush();
    }

    void flush() {
      for (size_t i = 0; i < size_; ++i) encode(pieces_[i]);
      size_ = 0;
    }

   private:
    struct Piece {
      const uint8_t* begin;
      size_t size;
      ShortWords::Key key;
    };

    void encode(const Piece& piece) {
      if (piece.size == 1) return out_.push_back(encoder_.byte_ids_[*piece.begin]);
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
        return encoder_.merge_piece({piece.begin, piece.size}, workspace_, out_);
      const LongWords::Key key = cache.key(piece.begin, piece.size, readable_);
      if (const size_t known = cache.lookup(key, out_.reserve(LongWords::kMaxIds))) {
        out_.advance(known);
        return known;
      }
      const size_t count = encoder_.merge_piece({piece.begin, piece.size}, workspace_, out_);
      const bool is_short = piece.size <= ShortWords::kMaxBytes && count <= ShortWords::kMaxIds;
      if (!is_short && count <= LongWords::kMaxIds) cache.insert(key, out_.last(count), count);
      return count;
    }

    const Encoder& encoder_;
    const uint8_t* readable_;
    Workspace& workspace_;
    IdArray& out_;
    size_t size_ = 0;
    std::array<Piece, 32> pieces_;
  };

  // Appends the ids of a piece; returns how many.
  size_t merge_piece(Bytes piece, Workspace& workspace, IdArray& out) const {
    if (whole_words_) {
      const uint32_t id = vocabulary_.find(piece);
      if (id != Vocabulary::kNone && !is_special_[id]) {
        out.push_back(id);
        return 1;
      }
    }
    uint32_t* const symbols = out.reserve(piece.size());
    for (size_t i = 0; i < piece.size(); ++i) symbols[i] = byte_ids_[piece[i]];
    const size_t count = workspace.merger.merge(merges_, symbols, piece.size());
    out.advance(count);
    return count;
  }

  Vocabulary vocabulary_;
  std::array<uint32_t, 256> byte_ids_;
  std::vector<bool> is_special_;
  MergeTable merges_;
  bool has_scheme_;
  Scheme scheme_;
  bool whole_words_;

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Workspace>> idle_;
  mutable std::shared_ptr<const Cutter> cutter_;
};

}  // namespace bpe
