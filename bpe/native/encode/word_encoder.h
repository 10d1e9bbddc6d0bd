// Pre-tokens to token ids: every model's way from a word to its tokens, and the caches before it.
#pragma once

#include <algorithm>
#include <array>
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
#include "encode/listed_merges.h"
#include "encode/marks.h"
#include "encode/merge_table.h"
#include "encode/merger.h"
#include "encode/model.h"
#include "encode/random.h"
#include "encode/symbols.h"
#include "encode/vocabulary.h"
#include "encode/word_cache.h"
#include "encode/word_pieces.h"
#include "table/id_array.h"

namespace bpe {

// Everything an encoding call writes to while it runs.
struct Workspace {
  // As WordCache's constructor.
  Workspace(size_t words, size_t ids) : cache(words, ids) {}

  WordCache cache;
  bool knows_tokens = false;  // whether all words that are tokens, but for huge ones, were in it
  Merger merger;
};

// What encoding a row reads and writes.
struct Run {
  Workspace& workspace;
  IdArray& ids;
  CacheUse& cache_use;
  std::optional<Dropout> dropout;
};

// Immutable once made.
class WordEncoder {
 public:
  using Bytes = std::span<const uint8_t>;

  // As Encoder's constructor. is_alone: tokens that superwords alone make; empty where none do.
  WordEncoder(Vocabulary vocabulary, std::span<const uint32_t> merges,
              const std::vector<int64_t>& special, const std::vector<bool>& is_alone,
              bool whole_words, const Model& model, Marks marks)
      : vocabulary_(std::move(vocabulary)),
        is_special_(vocabulary_.flags(special)),
        model_(model),
        symbols_(vocabulary_, model_, is_special_),
        merges_(merge_table(vocabulary_, is_special_, merges, "merge")),
        whole_words_(whole_words),
        marks_(std::move(marks)) {
    for (size_t id = 0; id < is_alone.size(); ++id)
      if (is_alone[id]) is_special_[id] = true;
    if (model_.unknown != Vocabulary::kNone) vocabulary_.checked(model_.unknown);
    if (model_.kind == Model::Kind::word_piece)
      word_pieces_.emplace(vocabulary_, model_, is_special_);
    if (model_.kind == Model::Kind::bytes)
      characters_.emplace(vocabulary_, vocabulary_.byte_ids(), merges_, merges);
  }

  WordEncoder(const WordEncoder&) = delete;
  WordEncoder& operator=(const WordEncoder&) = delete;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const std::vector<bool>& is_special() const { return is_special_; }
  const Model& model() const { return model_; }

  static constexpr int64_t kNotWhole = -1;

  // The token of a pre-token in which nothing merges. Throws Unencodable where it has none, but
  // for a model in which each byte has a token: there it is kNotWhole, and the pre-token is encoded
  // as any other.
  int64_t whole_token(Bytes word) const {
    const uint32_t id = find_whole(word);
    if (id != Vocabulary::kNone) return id;
    if (model_.kind == Model::Kind::bytes || model_.byte_fallback) return kNotWhole;
    if (model_.unknown == Vocabulary::kNone)
      throw Unencodable{std::string(word.begin(), word.end())};
    return model_.unknown;
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
      workspace->cache.insert_token(workspace->cache.key(token.data(), token.size(), end), token,
                                    marks_.marked(id));
    }
    return workspace;
  }

  // Pre-tokens that are gathered before the first is asked for: the more, the longer its entry has
  // to come. And how many ids are written past the last one, at most, while they are asked for.
  static constexpr size_t kGathered = 128;
  static constexpr size_t kMostWritten = kGathered * WordCache::kMaxInline;
  // Where one word is new, others may be: so many words later, more entries are asked for.
  static constexpr size_t kAhead = 2;

  // Pre-tokens on their way to the cache: while some are gathered, the entries of the first ones
  // come from memory.
  class Words {
   public:
    // Pre-tokens, and the bytes behind them up to `readable`, may be read.
    Words(const WordEncoder& encoder, const uint8_t* readable, Run& run)
        : encoder_(encoder),
          readable_(readable),
          run_(run),
          cache_(run.workspace.cache),
          ids_(run.ids) {}

    // [begin, end) is not empty.
    void push(const uint8_t* begin, const uint8_t* end) {
      gather(begin, end, size_);
      if (++size_ == kGathered) flush();
    }

    // All that next(begin, end) gives, until it returns false.
    template <typename Next>
    void push_all(Next next) {
      flush();
      for (bool more = true; more; flush()) {
        size_t size = 0;  // not size_, which would be stored and loaded for every piece
        for (const uint8_t *begin, *end; size < kGathered && (more = next(begin, end)); ++size)
          gather(begin, end, size);
        size_ = size;
      }
    }

    [[gnu::noinline]] void flush() {
      run_.cache_use.asked += size_;
      if (run_.dropout) {
        run_.cache_use.misses += size_;
        for (size_t i = 0; i < size_; ++i) encoder_.encode_with_dropout(word(i), run_);
      } else {
        for (size_t i = 0; i < long_; ++i) cache_.prefetch_ring(keys_[long_numbers_[i]]);
        cache_.is_narrow() ? encode<true>() : encode<false>();
      }
      long_ = 0;
      size_ = 0;
    }

   private:
    using Key = WordCache::Key;

    // Takes a pre-token as the one of this number.
    [[gnu::always_inline]] void gather(const uint8_t* begin, const uint8_t* end, size_t number) {
      keys_[number] = cache_.key(begin, static_cast<size_t>(end - begin), readable_);
      begins_[number] = begin;
      cache_.prefetch(keys_[number]);
      if (keys_[number].is_long()) [[unlikely]]
        long_numbers_[long_++] = static_cast<uint16_t>(number);
    }

    Bytes word(size_t number) const { return {begins_[number], keys_[number].size()}; }

    template <bool Narrow>
    void encode() {
      for (size_t done = 0;; ++done) {
        uint32_t* const begin = ids_.reserve((size_ - done) * WordCache::kMaxInline);
        uint32_t* end = begin;
        done += cache_.find_inline<Narrow>({keys_.data() + done, size_ - done}, end);
        ids_.advance(static_cast<size_t>(end - begin));
        if (done == size_) return;
        encode_rare(done);
      }
    }

    // A word that is not in the cache, is long, or has many ids.
    void encode_rare(size_t number) {
      const Key& key = keys_[number];
      const Bytes word = this->word(number);
      if (cache_.find_in_ring(key, word, ids_)) return;
      ++run_.cache_use.misses;  // each word that is merged, exactly (tests/bpe/test_cache_use.py)
      const bool may_be_token = word.size() > WordCache::kMaxBytes ||
                                !run_.workspace.knows_tokens ||
                                (key.is_long() && cache_.forgot_long());
      if (number + kAhead < size_) cache_.prefetch_behind(keys_[number + kAhead]);
      const size_t count = encoder_.encode_word(word, may_be_token, run_.workspace.merger, ids_);
      encoder_.mark(ids_, count);
      cache_.insert(key, word, {ids_.last(count), count});
    }

    const WordEncoder& encoder_;
    const uint8_t* readable_;
    Run& run_;
    WordCache& cache_;
    IdArray& ids_;
    size_t size_ = 0;
    size_t long_ = 0;  // of how many the key is long
    std::array<Key, kGathered> keys_;
    std::array<const uint8_t*, kGathered> begins_;
    std::array<uint16_t, kGathered> long_numbers_;  // of those whose key is long
  };

 private:
  // Marks the id of a pre-token that became `count` ids, where that is one.
  void mark(IdArray& ids, size_t count) const {
    if (count == 1) ids.back() = marks_.marked(ids.back());
  }

  // Appends the ids of a pre-token; returns how many. `may_be_token`: it is not sure that the
  // pre-token as a whole is none.
  size_t encode_word(Bytes word, bool may_be_token, Merger& merger, IdArray& out) const {
    if (word_pieces_) return word_pieces_->encode(word, out);
    if (whole_words_ && may_be_token) {
      const uint32_t id = find_whole(word);
      if (id != Vocabulary::kNone) {
        out.push_back(id);
        return 1;
      }
    }
    uint32_t* const symbols = out.reserve(symbols_.most(word.size()));
    const size_t size =
        characters_ ? characters_->write(word, symbols) : symbols_.write(word, symbols);
    const size_t count = merger.merge(merges_, symbols, size);
    out.advance(count);
    return count;
  }

  // The same where merges are dropped at random: no word encodes as it did before.
  void encode_with_dropout(Bytes word, Run& run) const {
    uint32_t* const symbols = run.ids.reserve(symbols_.most(word.size()));
    const size_t size = symbols_.write(word, symbols);
    const size_t count = run.workspace.merger.merge_with_dropout(
        merges_, symbols, size, [&] { return run.dropout->drops(); });
    run.ids.advance(count);
    mark(run.ids, count);
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
  std::vector<bool> is_special_;  // tokens that no pre-token is
  Model model_;
  Symbols symbols_;
  std::optional<WordPieces> word_pieces_;
  MergeTable merges_;
  std::optional<Characters> characters_;  // for a model of bytes
  bool whole_words_;
  Marks marks_;
};

}  // namespace bpe
