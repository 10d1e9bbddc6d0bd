// Which of several equally good pairs is merged first.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "table/names.h"
#include "train/pair_table.h"
#include "train/token_strings.h"
#include "train/word_array.h"

namespace bpe {

enum class Ties : uint8_t { bytes_min, bytes_max, id_min, huggingface, first_seen };

inline constexpr std::array<std::string_view, 5> kTiesNames = {"bytes-min", "bytes-max", "id-min",
                                                               "huggingface", "first-seen"};

inline Ties ties_from_name(std::string_view name) {
  return from_name<Ties>(name, kTiesNames, "tie rule");
}

// What a rule changes beside the order of ties. Hugging Face's BpeTrainer differs from the textbook
// in three ways, and its merges cannot be had without them.
struct TiePolicy {
  // A queue entry stands for the occurrences that one merge brought: with it, only their words are
  // merged. So a pair may wait more than once, every pair waits, and occurrences are never dropped.
  bool queues_occurrences = false;
  // The count of a pair that is merged stays, and the pair comes back with it.
  bool keeps_merged_count = false;
  // A pair that is a merge already and comes up again is merged only when it is chosen again.
  bool delays_known_merges = false;

  static constexpr TiePolicy of(Ties ties) {
    if (ties == Ties::huggingface) return {true, true, true};
    return {};
  }
};

// A rule, and what it must look at. It refers to its arguments, which must outlive it.
class TieBreaker {
 public:
  TieBreaker(Ties ties, const TokenStrings& tokens, const WordArray& words, PairTable& pairs)
      : ties_(ties), tokens_(tokens), words_(words), pairs_(pairs) {}

  Ties rule() const { return ties_; }
  TiePolicy policy() const { return TiePolicy::of(ties_); }

  // A pair that waits to be merged. Detail, first_seen: where the pair occurs first; huggingface:
  // which of its postings.
  struct Candidate {
    uint32_t pair;
    uint32_t detail;
  };

  // Whether a is merged before b.
  bool before(Candidate a, Candidate b) const {
    const SymbolPair x = pairs_[a.pair].pair, y = pairs_[b.pair].pair;
    switch (ties_) {
      case Ties::id_min:
        return x.key() < y.key();
      case Ties::huggingface:
        return x.key() != y.key() ? x.key() < y.key() : a.detail < b.detail;
      case Ties::first_seen:
        return a.detail < b.detail;
      case Ties::bytes_min:
      case Ties::bytes_max:
        break;
    }
    int order = tokens_.compare(x.left, y.left);
    if (order == 0) order = tokens_.compare(x.right, y.right);
    return ties_ == Ties::bytes_min ? order < 0 : order > 0;
  }

  // The first position where the pair occurs now; the greatest number where it does not.
  WordArray::Position first_occurrence(uint32_t pair) const {
    const SymbolPair symbols = pairs_[pair].pair;
    WordArray::Position first = 0xFFFFFFFFu;
    const auto look = [&](Postings& postings) {
      while (postings.cursor < postings.size &&
             !occurs(words_, symbols, postings.begin()[postings.cursor]))
        ++postings.cursor;
      if (postings.cursor < postings.size)
        first = std::min(first, postings.begin()[postings.cursor]);
    };
    look(pairs_[pair].postings);
    if (auto* later = pairs_.later_postings(pair))
      for (Postings& postings : *later) look(postings);
    return first;
  }

 private:
  Ties ties_;
  const TokenStrings& tokens_;
  const WordArray& words_;
  PairTable& pairs_;
};

}  // namespace bpe
