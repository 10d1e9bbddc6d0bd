// A regular expression as a table of steps, made by bpe/pattern_table.py.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "text/utf8.h"

namespace bpe {

// Where a pattern matches, found by one step for each character. Immutable.
//
// The classes that a pattern names tell characters apart by their symbol alone. A state is all that
// the text since the match began says about what may follow, in the order in which backtracking
// would try it (Cox, "Regular Expression Matching: the Virtual Machine Approach", 2009). The step
// from a state by a symbol says whether a match ends before the character, and the next state; a
// later match is the one that backtracking prefers, or the state would not lead to it.
class PatternTable {
 public:
  // symbols: of each code point; a malformed byte b has that of U+DC00 + b. steps: for each state
  // and symbol, twice the number of the next state, plus 1 if a match ends before the character;
  // state 0 is the end of all matching, state 1 the beginning. The last symbol is the end of the
  // text, the one before it a line feed that ends the text.
  // Throws std::invalid_argument where they do not fit together.
  PatternTable(std::span<const uint8_t> symbols, std::span<const uint32_t> steps, size_t width)
      : symbols_(symbols.begin(), symbols.end()), width_(width) {
    if (symbols.size() != kCodePoints)
      throw std::invalid_argument("a pattern table needs a symbol for each code point");
    if (width < 3 || steps.size() % width != 0 || steps.size() / width < 2 ||
        steps.size() > (size_t{1} << 30))
      throw std::invalid_argument("the steps of a pattern table are no rows of its width");
    for (const uint8_t symbol : symbols)
      if (symbol + size_t{2} >= width)
        throw std::invalid_argument("a symbol of a pattern table has no step");
    steps_.reserve(steps.size());
    for (const uint32_t step : steps) {
      if ((step >> 1) >= steps.size() / width)
        throw std::invalid_argument("a step of a pattern table leads to no state");
      if (steps_.size() % width == width - 1 && step > 1)
        throw std::invalid_argument("a pattern table goes on behind the end of the text");
      steps_.push_back(static_cast<uint32_t>((step >> 1) * width) << 1 | (step & 1));
    }
    for (size_t byte = 0; byte < 0x80; ++byte) begins_[byte] = steps_[width + symbols_[byte]] != 0;
    begins_['\n'] |= steps_[2 * width - 2] != 0;
  }

  // The first character of [p, end) that a match may begin with.
  const uint8_t* skip(const uint8_t* p, const uint8_t* end) const {
    while (p != end) {
      if (*p < 0x80) {
        if (begins_[*p]) break;
        ++p;
      } else {
        const auto [symbol, size] = look(p, end);
        if (steps_[width_ + symbol] != 0) break;
        p += size;
      }
    }
    return p;
  }

  // Where the match that begins at p ends (p < end), or null if none does. Matches are not empty.
  const uint8_t* match_end(const uint8_t* p, const uint8_t* end) const {
    const uint8_t* found = nullptr;
    size_t row = width_;
    do {
      size_t symbol = width_ - 1;
      const uint8_t* next = p;
      if (p != end) {
        const auto [of_p, size] = look(p, end);
        next = p + size;
        symbol = *p == '\n' && next == end ? width_ - 2 : of_p;
      }
      const uint32_t step = steps_[row + symbol];
      if (step & 1) found = p;
      row = step >> 1;
      p = next;
    } while (row != 0);
    return found;
  }

 private:
  struct Symbol {
    size_t number;
    uint32_t size;  // of the character in bytes
  };
  Symbol look(const uint8_t* p, const uint8_t* end) const {
    const auto [code_point, size] = decode_utf8(p, end);
    return {symbols_[code_point == kMalformed ? 0xDC00u | *p : code_point], size};
  }

  std::array<bool, 0x80> begins_;  // whether a match may begin with this character of ASCII
  std::vector<uint8_t> symbols_;
  std::vector<uint32_t> steps_;  // as given, with the first step of the next state for its number
  size_t width_;
};

// The matches of a pattern in [begin, end), and the text between them: a scanner as that of
// scanner.h.
class TableScanner {
 public:
  TableScanner(const PatternTable& table, const uint8_t* begin, const uint8_t* end)
      : table_(&table), at_(begin), end_(end) {}

  bool next(const uint8_t*& begin, const uint8_t*& end) {
    if (at_ == end_) return false;
    begin = at_;
    if (!match_end_) {
      const uint8_t* p = at_;
      while ((p = table_->skip(p, end_)) != end_ && !(match_end_ = table_->match_end(p, end_)))
        p += decode_utf8(p, end_).size;
      if (p != at_) {  // the text before the match
        end = at_ = p;
        return true;
      }
    }
    end = at_ = match_end_;
    match_end_ = nullptr;
    return true;
  }

 private:
  const PatternTable* table_;
  const uint8_t* at_;
  const uint8_t* match_end_ = nullptr;  // of the match that begins at at_, where it is known
  const uint8_t* end_;
};

}  // namespace bpe
