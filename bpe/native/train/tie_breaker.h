// Which of several equally good pairs is merged first.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "table/names.h"
#include "train/pair_table.h"
#include "train/token_strings.h"
#include "train/word_array.h"

namespace bpe {

// A tie rule: everything that the trainer and Python must know about it.
struct TieRule {
  // How two pairs compare; TieBreaker::before has a case for each.
  enum class Order : uint8_t {
    smallest_strings,
    greatest_strings,
    greatest_spellings,  // bytes compare as the characters of GPT-2's printable alphabet do
    ids,                 // then the detail, if there is any
    detail,
  };

  // What a queue entry stores about its pair next to the count; TieBreaker::detail updates it.
  //
  // CountQueue relies on one condition: while a pair gains no occurrences, a change of its detail
  // may only move the pair back. Then a stale entry comes out too early, never too late, and goes
  // back where it belongs. A pair that gains occurrences is queued again.
  enum class Detail : uint8_t {
    none,
    postings,          // the postings that the entry represents; never changes
    first_occurrence,  // where the pair occurs first; moves back as occurrences vanish
  };

  std::string_view name;
  Order order;
  Detail detail;
  // How equally frequent words that are never split are ordered: bytes, bytes-descending, or
  // first-seen, which also orders the words trained on. bpe/ties.py has a case for each.
  std::string_view words;
  // Hugging Face's BpeTrainer differs from the textbook in three ways, and its merges cannot be had
  // without them:
  // - A queue entry represents the occurrences that one merge brought: with it, only their words
  //   are merged. So a pair may wait more than once, every pair waits, and occurrences are never
  //   dropped.
  // - The count of a pair that is merged stays, and the pair comes back with it.
  // - A pair that is a merge already and comes up again is merged only when it is chosen again.
  bool queues_occurrences = false;
};

inline constexpr std::array kTieRules = {
    TieRule{"bytes-min", TieRule::Order::smallest_strings, TieRule::Detail::none, "bytes"},
    TieRule{"bytes-max", TieRule::Order::greatest_strings, TieRule::Detail::none,
            "bytes-descending"},
    TieRule{"gpt2-max", TieRule::Order::greatest_spellings, TieRule::Detail::none,
            "bytes-descending"},
    TieRule{"id-min", TieRule::Order::ids, TieRule::Detail::none, "bytes"},
    TieRule{"huggingface", TieRule::Order::ids, TieRule::Detail::postings, "bytes", true},
    TieRule{"first-seen", TieRule::Order::detail, TieRule::Detail::first_occurrence, "first-seen"},
};

// Throws std::invalid_argument, which lists the names, on others.
inline const TieRule& tie_rule(std::string_view name) {
  constexpr auto names = []<size_t... I>(std::index_sequence<I...>) {
    return std::array{kTieRules[I].name...};
  }(std::make_index_sequence<kTieRules.size()>{});
  return kTieRules[from_name<size_t>(name, names, "tie rule")];
}

// A pair that waits to be merged.
struct Candidate {
  int64_t count;
  uint32_t pair;
  uint32_t detail;
};

// A rule, and what it must look at. It refers to its arguments, which must outlive it.
class TieBreaker {
 public:
  TieBreaker(const TieRule& rule, const TokenStrings& tokens, const WordArray& words,
             PairTable& pairs)
      : rule_(rule), tokens_(tokens), words_(words), pairs_(pairs) {}

  bool queues_occurrences() const { return rule_.queues_occurrences; }

  // Whether a is merged before b, whatever their counts.
  bool before(const Candidate& a, const Candidate& b) const {
    const SymbolPair x = pairs_[a.pair].pair, y = pairs_[b.pair].pair;
    switch (rule_.order) {
      case TieRule::Order::smallest_strings:
        return compared(x, y, &TokenStrings::compare) < 0;
      case TieRule::Order::greatest_strings:
        return compared(x, y, &TokenStrings::compare) > 0;
      case TieRule::Order::greatest_spellings:
        return compared(x, y, &TokenStrings::compare_spellings) > 0;
      case TieRule::Order::ids:
        return x.key() != y.key() ? x.key() < y.key() : a.detail < b.detail;
      case TieRule::Order::detail:
        return a.detail < b.detail;
    }
    __builtin_unreachable();  // setup.py makes a missing case an error
  }

  // The current detail of a pair's entry; `postings`: those that the entry represents.
  uint32_t detail(uint32_t pair, uint32_t postings) const {
    switch (rule_.detail) {
      case TieRule::Detail::none:
        return 0;
      case TieRule::Detail::postings:
        return postings;
      case TieRule::Detail::first_occurrence:
        return first_occurrence(pair);
    }
    __builtin_unreachable();
  }

 private:
  // As `compare` orders the left symbols, then the right ones.
  int compared(SymbolPair x, SymbolPair y,
               int (TokenStrings::*compare)(uint32_t, uint32_t) const) const {
    const int order = (tokens_.*compare)(x.left, y.left);
    return order != 0 ? order : (tokens_.*compare)(x.right, y.right);
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

  const TieRule& rule_;
  const TokenStrings& tokens_;
  const WordArray& words_;
  PairTable& pairs_;
};

}  // namespace bpe
