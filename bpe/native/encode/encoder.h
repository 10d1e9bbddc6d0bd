// Texts to token ids and back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "encode/decoder.h"
#include "encode/encoded_rows.h"
#include "encode/marks.h"
#include "encode/model.h"
#include "encode/random.h"
#include "encode/superwords.h"
#include "encode/vocabulary.h"
#include "encode/word_batch.h"
#include "encode/word_encoder.h"
#include "text/scanner.h"
#include "text/segments.h"
#include "text/special.h"
#include "text/text_column.h"

namespace bpe {

// Immutable once made: any number of threads may encode at once, each in a workspace of its own.
class Encoder {
 public:
  // merges: (left, right, result) ids, the first merge first; none for WordPiece. special: ids
  // that no text makes (they are found in it where a call allows them). Throws
  // std::invalid_argument, naming the merge or the id, unless every byte of a model of bytes has a
  // token, each merge makes the bytes of its parts and is listed once, and no special token takes
  // part in merging.
  //
  // superwords: merges across pre-tokens, of a model of bytes, which are checked alike. Or marks:
  // of each token, 0 to 3, which ids then come back with.
  Encoder(Vocabulary vocabulary, std::span<const uint32_t> merges,
          const std::vector<int64_t>& special, Pretokenizer pretokenizer, bool whole_words,
          const Model& model, std::span<const uint32_t> superwords = {},
          std::vector<uint8_t> marks = {})
      : is_marked_(!marks.empty()),
        superwords_(superwords.empty()
                        ? std::nullopt
                        : std::optional<Superwords>(std::in_place, vocabulary, superwords, merges,
                                                    vocabulary.flags(special))),
        words_(std::move(vocabulary), merges, special,
               superwords_ ? superwords_->is_alone() : std::vector<bool>(), whole_words, model,
               superwords_ ? superwords_->marks() : std::move(marks), pretokenizer.never_split),
        decoder_(words_.vocabulary(), words_.model(), words_.is_special()),
        pretokenizer_(std::move(pretokenizer)) {
    idle_.reserve(std::max(1u, std::thread::hardware_concurrency()));
    idle_.push_back(words_.new_workspace());  // ready before the first text comes
  }

  // special, ids: the tokens that are cut out of the text whole, wherever they are in it.
  // narrow: whether ids have 16 bits.
  EncodedRows encode(const TextColumn& column, const SpecialMatcher& special,
                     const std::vector<int64_t>& ids, const Noise& noise, bool narrow) const {
    require_pattern(pretokenizer_);
    if (special.size() != ids.size())
      throw std::invalid_argument("special tokens need one id each");
    for (const int64_t id : ids) vocabulary().checked(id);
    const auto encode_row = [&](size_t row, WordBatch& batch) {
      special.cut(
          column[row], [&](Bytes text) { encode_segment(text, batch); },
          [&](size_t which, Bytes) { batch.push_token(static_cast<uint32_t>(ids[which])); });
    };
    return encode_rows(column.rows(), column.bytes(), column.readable(), noise, narrow, encode_row);
  }

  // Text that was cut elsewhere, in segments. `what`: the id of a token, kText or kNeverSplit;
  // row_ends as check_row_ends has them. A segment of text is one pre-token, or, if `cut` says so,
  // is cut here.
  EncodedRows encode_segments(const TextColumn& segments, std::span<const int64_t> what,
                              std::span<const int64_t> row_ends, bool cut, const Noise& noise,
                              bool narrow) const {
    if (what.size() != segments.rows())
      throw std::invalid_argument("it is not known of each segment what it is");
    check_row_ends(row_ends, segments.rows());
    if (cut) require_pattern(pretokenizer_);
    const auto encode_row = [&](size_t row, WordBatch& batch) {
      const auto first = static_cast<size_t>(row == 0 ? 0 : row_ends[row - 1]);
      const auto last = static_cast<size_t>(row_ends[row]);
      for (size_t segment = first; segment < last; ++segment) {
        const Bytes bytes = segments[segment];
        if (what[segment] == kNeverSplit) {
          batch.push_whole(bytes.data(), bytes.data() + bytes.size());
        } else if (what[segment] != kText) {
          batch.push_token(vocabulary().checked(what[segment]));
        } else if (cut) {
          encode_segment(bytes, batch);
        } else if (!bytes.empty()) {
          batch.push(bytes.data(), bytes.data() + bytes.size());
        }
      }
    };
    return encode_rows(row_ends.size(), segments.bytes(), segments.readable(), noise, narrow,
                       encode_row);
  }

  // As Decoder::decode, without the ids in `skipped`.
  ByteStrings decode(std::span<const uint32_t> ids, std::span<const int64_t> offsets,
                     const std::vector<int64_t>& skipped) const {
    return decoder_.decode(ids, offsets,
                           skipped.empty() ? std::vector<bool>() : vocabulary().flags(skipped));
  }

  const Vocabulary& vocabulary() const { return words_.vocabulary(); }

 private:
  // A workspace for one call: an idle one, or a new one.
  std::unique_ptr<Workspace> take_workspace() const {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Workspace> workspace = std::move(idle_.back());
        idle_.pop_back();
        return workspace;
      }
    }
    return words_.new_workspace();
  }

  // No more are kept than can be at work at a time, after a peak of threads.
  void give_back(std::unique_ptr<Workspace> workspace) const {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < idle_.capacity()) idle_.push_back(std::move(workspace));
  }

  // Encodes each of `count` rows with encode_row(row, batch). They have so many bytes together,
  // which are before `readable`.
  template <typename EncodeRow>
  EncodedRows encode_rows(size_t count, size_t bytes, const uint8_t* readable, const Noise& noise,
                          bool narrow, EncodeRow encode_row) const {
    if (narrow && (is_marked_ || vocabulary().size() > size_t{1} << 16))
      throw std::invalid_argument("ids of this tokenizer do not fit 16 bits");
    const bool is_noisy = noise.rate > 0;
    if (is_noisy && words_.model().kind == Model::Kind::word_piece)
      throw std::invalid_argument("WordPiece has no merges that could be dropped");
    if (is_noisy && noise.seeds.size() != count)
      throw std::invalid_argument("there is not one seed for each row");
    // An error may come in the middle of a word: what a workspace holds then is not kept.
    std::unique_ptr<Workspace> workspace = take_workspace();
    // No id represents less than a byte, except an end of a word.
    EncodedRows encoded{{narrow, bytes + WordBatch::kMostWritten}};
    encoded.offsets.reserve(count + 1);
    WordBatch batch(words_, *workspace, readable, noise, superwords_ ? &*superwords_ : nullptr,
                    encoded);
    for (size_t row = 0; row < count; ++row) {
      encode_row(row, batch);
      batch.end_row();
    }
    batch.flush();
    give_back(std::move(workspace));
    return encoded;
  }

  void encode_segment(Bytes text, WordBatch& batch) const {
    pretokenizer_.never_split.cut(
        text.data(), text.data() + text.size(),
        [&](const uint8_t* from, const uint8_t* to) {
          scan(pretokenizer_.patterns, from, to,
               [&](const auto& scanner) { push_all(scanner, batch); });
        },
        [&](const uint8_t* from, const uint8_t* to) { batch.push(from, to); });
  }

  // Never inlined, so that the scanner, which is a copy, lives in registers.
  template <class Scanner>
  [[gnu::noinline]] static void push_all(Scanner scanner, WordBatch& batch) {
    batch.push_all([&](auto& begin, auto& end) { return scanner.next(begin, end); });
  }

  bool is_marked_;
  std::optional<Superwords> superwords_;
  WordEncoder words_;
  Decoder decoder_;
  Pretokenizer pretokenizer_;

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Workspace>> idle_;
};

}  // namespace bpe
