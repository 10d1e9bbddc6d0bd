// Strings that stay whole, whatever cuts the text around them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "text/pattern_table.h"

namespace bpe {

class NeverSplit {
 public:
  struct Pattern {
    std::shared_ptr<const PatternTable> anywhere;  // finds matches in a text
    std::shared_ptr<const PatternTable> all;       // matches a text as a whole or not at all
  };

  NeverSplit() = default;
  explicit NeverSplit(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {}

  // Calls on_match(begin, end) for each match in a text, leftmost first, of several that begin
  // there that of the first pattern; and on_text(begin, end) for what is between, where that is
  // not empty; in order.
  template <class OnText, class OnMatch>
  void cut(const uint8_t* const text, const uint8_t* const end, OnText&& on_text,
           OnMatch&& on_match) const {
    std::vector<PatternTable::Match> next(patterns_.size(), {text, text});
    const uint8_t* rest = text;
    while (rest != end) {
      PatternTable::Match first{end, end};
      for (size_t i = 0; i < next.size(); ++i) {
        if (next[i].begin < rest || next[i].end == text)
          next[i] = patterns_[i].anywhere->find(text, rest, end);
        if (next[i].begin < first.begin) first = next[i];
      }
      if (rest != first.begin) on_text(rest, first.begin);
      if (first.begin != end) on_match(first.begin, first.end);
      rest = first.end;
    }
  }

  // Whether a pattern matches all of a pre-token.
  bool matches(Bytes pretoken) const {
    const uint8_t *const begin = pretoken.data(), *const end = begin + pretoken.size();
    return std::ranges::any_of(patterns_, [&](const Pattern& pattern) {
      return pattern.all->match_at(begin, begin, end) == end;
    });
  }

 private:
  std::vector<Pattern> patterns_;
};

}  // namespace bpe
