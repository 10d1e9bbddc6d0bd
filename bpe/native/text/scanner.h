// Cuts texts into pre-tokens, where the regular expression of a pattern does.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <variant>

#include "text/ascii.h"
#include "text/patterns/window.h"
#include "text/pretokenizers.h"

namespace bpe {

// The pre-tokens of [begin, end), in order. Any bytes are a text: where no well-formed UTF-8
// starts, one byte is a character of class kOther. A scanner holds its position and what it
// knows of the bytes ahead; copy it freely. Pattern: see patterns/shared.h. Block looks at sixteen
// bytes at a time (ascii.h).
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
    return window_ends<Pattern, Block>(p, end);
  }

  const uint8_t* at_;
  const uint8_t* end_;
  const uint8_t* window_ = nullptr;
  Positions64 ends_ = 0;  // of pre-tokens, from window_ on
};

// Calls use(scanner) with a scanner of the type that a pattern has, for the text [begin, end).
template <class Use>
void with_scanner(const CutPattern& pattern, const uint8_t* begin, const uint8_t* end, Use&& use) {
  if (const auto* table = std::get_if<std::shared_ptr<const PatternTable>>(&pattern))
    return use(TableScanner(**table, begin, end));
  with_pattern(std::get<NamedPattern>(pattern),
               [&](auto named) { use(Scanner<typename decltype(named)::type>(begin, end)); });
}

// Throws std::invalid_argument where a pre-tokenizer has no pattern.
inline void require_pattern(const Pretokenizer& pretokenizer) {
  if (pretokenizer.patterns.empty())
    throw std::invalid_argument("there is no pre-tokenizer: give pieces");
}

// Calls use(scanner) with the scanners that give the pre-tokens of [begin, end), in order. Each
// pattern cuts the pieces of the one before it, and a piece is a text of its own: the last pattern
// has a scanner for each. There is at least one.
template <class Use>
void scan(std::span<const CutPattern> patterns, const uint8_t* begin, const uint8_t* end,
          const Use& use) {
  with_scanner(patterns.front(), begin, end, [&](auto scanner) {
    if (patterns.size() == 1) return use(scanner);
    for (const uint8_t *from, *to; scanner.next(from, to);)
      scan(patterns.subspan(1), from, to, use);
  });
}

// Calls use(begin, end) for each pre-token of a scanner. Never inlined, so that the scanner, which
// is a copy, lives in registers.
template <class Scanner, class Use>
[[gnu::noinline]] void use_all(Scanner scanner, Use& use) {
  for (const uint8_t *begin, *end; scanner.next(begin, end);) use(begin, end);
}

// The same for each pre-token of a text, in order.
template <class Use>
void each_pretoken(const Pretokenizer& pretokenizer, Bytes text, Use&& use) {
  const auto cut = [&](const uint8_t* from, const uint8_t* to) {
    scan(pretokenizer.patterns, from, to, [&](const auto& scanner) { use_all(scanner, use); });
  };
  pretokenizer.never_split.cut(text.data(), text.data() + text.size(), cut, use);
}

}  // namespace bpe
