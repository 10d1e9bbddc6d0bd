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
    ids,                 // of huggingface, too: a string is made of bytes in one way alone, so that
                         // what BpeTrainer does with a pair that comes back never shows
    first_occurrences,
  };

  std::string_view name;
  Order order;
  // How equally frequent words that are never split are ordered: bytes, bytes-descending, or
  // first-seen, which also orders the words trained on. bpe/ties.py has a case for each.
  std::string_view words;
};

inline constexpr std::array kTieRules = {
    TieRule{"bytes-min", TieRule::Order::smallest_strings, "bytes"},
    TieRule{"bytes-max", TieRule::Order::greatest_strings, "bytes-descending"},
    TieRule{"gpt2-max", TieRule::Order::greatest_spellings, "bytes-descending"},
    TieRule{"id-min", TieRule::Order::ids, "bytes"},
    TieRule{"huggingface", TieRule::Order::ids, "bytes"},
    TieRule{"first-seen", TieRule::Order::first_occurrences, "first-seen"},
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
  WordArray::Position first;  // TieBreaker::first
};

// A rule, and what it must look at. It refers to its arguments, which must outlive it.
class TieBreaker {
 public:
  TieBreaker(const TieRule& rule, const TokenStrings& tokens, const WordArray& words,
             PairTable& pairs)
      : rule_(rule), tokens_(tokens), words_(words), pairs_(pairs) {}

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
        return x.key() < y.key();
      case TieRule::Order::first_occurrences:
        return a.first < b.first;
    }
    __builtin_unreachable();  // setup.py makes a missing case an error
  }

  // The first position where a pair occurs now, if the rule asks for it. While the pair gains no
  // occurrences, it only moves back: so a stale entry of CountQueue comes out too early, never too
  // late, and goes back where it belongs. A pair that gains occurrences is queued again.
  WordArray::Position first(uint32_t pair) const {
    return rule_.order == TieRule::Order::first_occurrences ? first_occurrence(pair) : 0;
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
