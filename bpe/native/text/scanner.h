// Cuts texts into pre-tokens, where the regular expression of a pattern does.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "text/ascii.h"
#include "text/pretokenizers.h"

namespace bpe {

// The pre-tokens of [begin, end), in order. Any bytes are a text: where no well-formed UTF-8
// starts, one byte is a character of class kOther. A scanner is where it stands and what it knows
// of the bytes ahead; copy it freely. Pattern: see patterns/shared.h. Block looks at sixteen bytes
// at a time (ascii.h).
template <class Pattern, class Block = AsciiBlock>
class Scanner {
 public:
  Scanner(const uint8_t* begin, const uint8_t* end) : at_(begin), end_(end) {}

  // The next pre-token (never empty); false at the end of the text.
  bool next(const uint8_t*& begin, const uint8_t*& end) {
    at_ = Pattern::begin(at_, end_);
    if (at_ == end_) return false;
    begin = at_;
    if constexpr (Pattern::kHasWindow) {
      if (ends_ == 0) {
        window_ = at_;
        ends_ = look_ahead(at_, end_);
      }
      if (ends_ != 0) {
        end = at_ = window_ + std::countr_zero(ends_);
        ends_ &= ends_ - 1;
        return true;
      }
    }
    end = at_ = Pattern::match(at_, end_);
    return true;
  }

 private:
  // Not of this scanner, so that it may live in registers.
  [[gnu::noinline]] static Positions64 look_ahead(const uint8_t* p, const uint8_t* end) {
    return Pattern::template ends_ahead<Block>(p, end);
  }

  const uint8_t* at_;
  const uint8_t* end_;
  const uint8_t* window_ = nullptr;
  Positions64 ends_ = 0;  // of pre-tokens, from window_ on
};

// Calls f with what makes the scanner of a text, [begin, end), by one pattern: a functor of one
// type for each pattern of the list, and of one for all tables.
template <class F>
decltype(auto) with_pattern_scanner(const CutPattern& pattern, F&& f) {
  if (const auto* table = std::get_if<std::shared_ptr<const PatternTable>>(&pattern))
    return std::forward<F>(f)([&table = **table](const uint8_t* begin, const uint8_t* end) {
      return TableScanner(table, begin, end);
    });
  return with_pattern(std::get<NamedPattern>(pattern), [&](auto named) {
    return std::forward<F>(f)([](const uint8_t* begin, const uint8_t* end) {
      return Scanner<typename decltype(named)::type>(begin, end);
    });
  });
}

// The pre-tokens of [begin, end) by several patterns, each of which cuts the pieces of the one
// before. A piece is a text of its own to the next pattern.
class StepsScanner {
 public:
  StepsScanner(std::span<const CutPattern> patterns, const uint8_t* begin, const uint8_t* end)
      : patterns_(patterns) {
    levels_.reserve(patterns.size());
    enter(begin, end);
  }

  bool next(const uint8_t*& begin, const uint8_t*& end) {
    while (!levels_.empty()) {
      if (!std::visit([&](auto& scanner) { return scanner.next(begin, end); }, levels_.back()))
        levels_.pop_back();
      else if (levels_.size() == patterns_.size())
        return true;
      else
        enter(begin, end);
    }
    return false;
  }

 private:
  template <class... Pattern>
  static std::variant<TableScanner, Scanner<Pattern>...> any_of(const std::tuple<Pattern...>*);
  using AnyScanner = decltype(any_of(static_cast<Patterns*>(nullptr)));

  void enter(const uint8_t* begin, const uint8_t* end) {
    with_pattern_scanner(patterns_[levels_.size()], [&](const auto& scanner_of) {
      levels_.emplace_back(scanner_of(begin, end));
    });
  }

  std::span<const CutPattern> patterns_;
  std::vector<AnyScanner> levels_;  // of the text, of a piece of it, of a piece of that, …
};

// As with_pattern_scanner, by all patterns of a pre-tokenizer, between what is never split. Throws
// std::invalid_argument where it has none.
template <class F>
decltype(auto) with_scanner(const Pretokenizer& pretokenizer, F&& f) {
  const std::vector<CutPattern>& patterns = pretokenizer.patterns;
  if (patterns.empty()) throw std::invalid_argument("there is no pre-tokenizer: give pieces");
  if (patterns.size() == 1) return with_pattern_scanner(patterns.front(), std::forward<F>(f));
  return std::forward<F>(f)([&patterns](const uint8_t* begin, const uint8_t* end) {
    return StepsScanner(patterns, begin, end);
  });
}

}  // namespace bpe
