// Rows of pre-tokens on their way to ids.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "encode/encoded_rows.h"
#include "encode/merger.h"
#include "encode/random.h"
#include "encode/superwords.h"
#include "encode/word_cache.h"
#include "encode/word_encoder.h"
#include "table/id_array.h"

namespace bpe {

// Merges are dropped at random where the rate is above 0, with a seed for each row.
struct Noise {
  double rate = 0;
  std::span<const uint64_t> seeds;
};

// While pre-tokens are gathered, the entries of the first ones come from memory. A batch goes on
// over the ends of rows, so that short rows are encoded as fast as long ones.
class WordBatch {
 public:
  // The more are gathered before the first is asked for, the longer its entry has to come. And how
  // many ids are written past the last one, at most.
  static constexpr size_t kGathered = 128;
  static constexpr size_t kMostWritten = kGathered * WordCache::kMaxInline;

  // Pre-tokens are in memory until flush(), and bytes after them up to `readable` may be read.
  // superwords: merged at the end of each row; null for none.
  WordBatch(const WordEncoder& encoder, Workspace& workspace, const uint8_t* readable,
            const Noise& noise, const Superwords* superwords, EncodedRows& rows)
      : encoder_(encoder),
        workspace_(workspace),
        cache_(workspace.cache),
        dropout_(workspace.merger.dropout),
        readable_(readable),
        noise_(noise),
        superwords_(superwords),
        rows_(rows),
        ids_(superwords ? marked_ : rows.ids) {
    begin_row();
  }
  WordBatch(const WordBatch&) = delete;
  WordBatch& operator=(const WordBatch&) = delete;

  // [begin, end) is not empty.
  void push(const uint8_t* begin, const uint8_t* end) {
    gather(begin, end, size_);
    if (++size_ == kGathered) flush();
  }

  // All that next(begin, end) gives, until it returns false.
  template <typename Next>
  void push_all(Next next) {
    for (bool more = true; more;) {
      size_t size = size_;  // not a member, which would be stored and loaded for every piece
      for (const uint8_t *begin, *end; size < kGathered && (more = next(begin, end)); ++size)
        gather(begin, end, size);
      size_ = size;
      if (size_ == kGathered) flush();
    }
  }

  // A pre-token in which nothing merges.
  void push_whole(const uint8_t* begin, const uint8_t* end) {
    keys_[size_] = cache_.key(begin, static_cast<size_t>(end - begin), readable_);
    begins_[size_] = begin;
    const size_t number = size_++;
    stop(Stop::Kind::whole, number);
    if (size_ == kGathered) flush();
  }

  void push_token(uint32_t id) { stop(Stop::Kind::token, size_, id); }
  void end_row() { stop(Stop::Kind::row_end, size_); }

  [[gnu::noinline]] void flush() {
    if (!dropout_)
      for (Stop& stop : std::span(stops_).first(stops_size_))
        if (stop.kind == Stop::Kind::long_word) stop.place = cache_.find_long(keys_[stop.word]);
    size_t done = 0;
    for (const Stop& stop : std::span(stops_).first(stops_size_)) {
      if (done != stop.word) encode(done, stop.word);
      done = stop.word;
      switch (stop.kind) {
        case Stop::Kind::long_word:
          encode_long(done++, stop.place);
          break;
        case Stop::Kind::whole:
          encode_whole(done++);
          break;
        case Stop::Kind::token:
          attempt(0, [&] { ids_.append({&stop.id, 1}); });
          break;
        case Stop::Kind::row_end:
          finish_row();
      }
    }
    encode(done, size_);
    size_ = stops_size_ = 0;
  }

 private:
  using Key = WordCache::Key;

  // Where one word is new, others may be: so many words later, more entries are asked for.
  static constexpr size_t kAhead = 2;

  // What comes before a word, or is to be done with it.
  struct Stop {
    enum class Kind : uint8_t { long_word, whole, token, row_end };
    Kind kind;
    uint16_t word;           // its number
    uint32_t id;             // of the token
    WordCache::Place place;  // of a long word
  };

  // Takes a pre-token as the one of this number.
  [[gnu::always_inline]] void gather(const uint8_t* begin, const uint8_t* end, size_t number) {
    keys_[number] = cache_.key(begin, static_cast<size_t>(end - begin), readable_);
    begins_[number] = begin;
    cache_.prefetch(keys_[number]);
    if (keys_[number].is_long()) [[unlikely]]
      stops_[stops_size_++] = {Stop::Kind::long_word, static_cast<uint16_t>(number), 0, {}};
  }

  void stop(Stop::Kind kind, size_t word, uint32_t id = 0) {
    stops_[stops_size_++] = {kind, static_cast<uint16_t>(word), id, {}};
    if (stops_size_ >= kGathered) flush();
  }

  Bytes word(size_t number) const { return {begins_[number], keys_[number].size()}; }
  size_t row() const { return rows_.offsets.size() - 1; }

  // Encodes so many words by encode(), or skips them where their row cannot be encoded.
  template <typename Encode>
  void attempt(size_t words, Encode encode) {
    if (failed_) return;
    rows_.cache_use.asked += words;
    try {
      encode();
    } catch (Unencodable& found) {
      failed_ = true;
      ids_.truncate(superwords_ ? 0 : static_cast<size_t>(rows_.offsets.back()));
      rows_.unencodable.emplace_back(row(), std::move(found));
    }
  }

  // Encodes the words [from, to).
  void encode(size_t from, size_t to) {
    attempt(to - from, [&] {
      if (dropout_) {
        rows_.cache_use.misses += to - from;
        for (; from != to; ++from) ids_.append(encoder_.encode(word(from), false, workspace_));
      } else if (!cache_.is_narrow()) {
        find<uint32_t, uint32_t>(from, to);
      } else if (ids_.is_narrow()) {
        find<uint16_t, uint16_t>(from, to);
      } else {
        find<uint16_t, uint32_t>(from, to);
      }
    });
  }

  // Cached, Id: as the cache, and the array, hold ids.
  template <typename Cached, typename Id>
  void find(size_t from, size_t to) {
    for (;; ++from) {
      Id* const begin = ids_.reserve<Id>((to - from) * WordCache::kMaxInline);
      Id* end = begin;
      WordCache::Place place;
      from += cache_.find_inline<Cached>(std::span(keys_).subspan(from, to - from), end, place);
      ids_.advance(static_cast<size_t>(end - begin));
      if (from == to) return;
      if (!cache_.copy(place, keys_[from], word(from), ids_)) encode_new(from);
    }
  }

  // place: where the ring holds it, unless it came there since it was looked up.
  void encode_long(size_t number, const WordCache::Place& place) {
    if (dropout_) return encode(number, number + 1);
    attempt(1, [&] {
      if (cache_.copy(place, keys_[number], word(number), ids_)) return;
      const WordCache::Place again = cache_.find_long(keys_[number]);
      if (!cache_.copy(again, keys_[number], word(number), ids_)) encode_new(number);
    });
  }

  void encode_whole(size_t number) {
    if (word(number).empty()) return;
    attempt(1, [&] {
      ++rows_.cache_use.misses;
      if (encoder_.find_whole(word(number), workspace_.symbols))
        ids_.append(workspace_.symbols);
      else
        ids_.append(encoder_.encode(word(number), true, workspace_));
    });
  }

  // A word that is not in the cache. Each is merged once (tests/bpe/test_cache_use.py).
  [[gnu::noinline]] void encode_new(size_t number) {
    const Key& key = keys_[number];
    const Bytes word = this->word(number);
    ++rows_.cache_use.misses;
    const bool may_be_token = word.size() > WordCache::kMaxBytes || !workspace_.knows_tokens ||
                              (key.is_long() && cache_.forgot_long());
    if (number + kAhead < size_) cache_.prefetch_next(keys_[number + kAhead]);
    const std::span<const uint32_t> ids = encoder_.encode(word, may_be_token, workspace_);
    ids_.append(ids);
    cache_.insert(key, word, ids);
  }

  void begin_row() {
    dropout_.reset();
    if (noise_.rate > 0 && row() < noise_.seeds.size())
      dropout_ = {noise_.rate, SplitMix64(noise_.seeds[row()])};
  }

  void finish_row() {
    if (superwords_) {
      const std::span<uint32_t> ids = marked_.wide();
      rows_.ids.append(ids.first(superwords_->merge(ids, workspace_.merger)));
      marked_.truncate(0);
    }
    failed_ = false;
    rows_.offsets.push_back(static_cast<int64_t>(rows_.ids.size()));
    begin_row();
  }

  const WordEncoder& encoder_;
  Workspace& workspace_;
  WordCache& cache_;
  std::optional<Dropout>& dropout_;
  const uint8_t* const readable_;
  const Noise noise_;
  const Superwords* const superwords_;
  EncodedRows& rows_;
  IdArray marked_{false, 0};  // of the row, before superwords are merged
  IdArray& ids_;
  bool failed_ = false;  // the row holds what cannot be encoded
  size_t size_ = 0;
  size_t stops_size_ = 0;
  std::array<Key, kGathered> keys_;
  std::array<const uint8_t*, kGathered> begins_;
  std::array<Stop, 2 * kGathered> stops_;  // in order; each word may have one
};

}  // namespace bpe
