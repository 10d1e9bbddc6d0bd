// A regular expression as a table of steps, made by bpe/regex/table.py.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "text/ascii.h"
#include "text/utf8.h"

namespace bpe {

// Where a pattern matches, found by one step for each character. Immutable.
//
// The classes that a pattern names tell characters apart by their symbol alone. A state is all that
// the text since the match began says about what may follow, in the order in which backtracking
// would try it (Cox, "Regular Expression Matching: the Virtual Machine Approach", 2009). The step
// from a state by a symbol says whether a match ends before the character, and the next state; a
// later match is the one that backtracking prefers, or the state would not lead to it.
//
// A search looks for a character that each match holds, and goes back from there to where the match
// may begin.
class PatternTable {
 public:
  // What a symbol is to a search, as bits.
  static constexpr uint8_t kRequired = 1;   // each match holds one of these
  static constexpr uint8_t kBefore = 2;     // a match may hold it before the first of those
  static constexpr uint8_t kNotBehind = 4;  // no match begins after it
  static constexpr uint8_t kFirst = 8;      // a match may begin with it

  // symbols: of each code point; a malformed byte b has that of U+DC00 + b. steps: for each state
  // and symbol, twice the number of the next state, plus 1 if a match ends before the character;
  // state 0 is the end of all matching, state 1 the beginning. roles: of each symbol. The last
  // symbol is the end of the text, the one before it a line feed that ends the text. few: all
  // required characters, where they are up to three of ASCII, else nothing.
  // Throws std::invalid_argument where they do not fit together.
  PatternTable(Bytes symbols, std::span<const uint32_t> steps, Bytes roles, Bytes few)
      : symbols_(symbols.begin(), symbols.end()),
        roles_(roles.begin(), roles.end()),
        width_(roles.size()) {
    if (symbols.size() != kCodePoints)
      throw std::invalid_argument("a pattern table needs a symbol for each code point");
    if (width_ < 3 || steps.size() % width_ != 0 || steps.size() / width_ < 2 ||
        steps.size() > (size_t{1} << 30))
      throw std::invalid_argument("the steps of a pattern table are no rows of its width");
    for (const uint8_t symbol : symbols_)
      if (symbol + size_t{2} >= width_)
        throw std::invalid_argument("a symbol of a pattern table has no step");
    steps_.reserve(steps.size());
    for (const uint32_t step : steps) {
      if ((step >> 1) >= steps.size() / width_)
        throw std::invalid_argument("a step of a pattern table leads to no state");
      if (steps_.size() % width_ == width_ - 1 && step > 1)
        throw std::invalid_argument("a pattern table goes on after the end of the text");
      steps_.push_back(static_cast<uint32_t>((step >> 1) * width_) << 1 | (step & 1));
    }
    for (size_t i = 0; i < kCodePoints; ++i)
      of_byte_[std::min<size_t>(i, 0x80)] |= roles_[symbols_[i]];
    std::fill(of_byte_.begin() + 0x80, of_byte_.end(), of_byte_[0x80]);
    for (const uint8_t role : roles_) looks_behind_ |= (role & kNotBehind) != 0;
    if (few.size() > few_.size()) throw std::invalid_argument("too many required characters");
    if (!few.empty()) few_.fill(static_cast<char>(few.front()));
    std::ranges::copy(few, few_.begin());
    are_few_ = !few.empty();
  }

  struct Match {
    const uint8_t *begin, *end;
  };

  // The first match in a text, [text, end), that begins at p or after it; {end, end} if none does.
  Match find(const uint8_t* text, const uint8_t* p, const uint8_t* end) const {
    // The row with which a match was tried and failed at each place from `first` on, 0 for none:
    // many matches that fail far after their beginnings do not take many times that long.
    const uint8_t* first = p;
    std::vector<size_t> failed;
    const auto has_failed = [&](size_t row, const uint8_t* at) {
      const auto place = static_cast<size_t>(at - first);
      if (place >= failed.size()) failed.resize(place + 1);
      return std::exchange(failed[place], row) == row;
    };
    for (const uint8_t* hit; (hit = skip(p, end)) != end; p = hit + look(hit, end).size) {
      const uint8_t* from = hit;
      for (const uint8_t* before; from != p; from = before) {
        before = character_before(p, from);
        if (!is(kBefore, before, from)) break;
      }
      for (; from <= hit; from += look(from, end).size) {
        if (!is(kFirst, from, end) || is_barred(text, from)) continue;
        if (static_cast<size_t>(from - first) >= failed.size()) {
          failed.clear();
          first = from;
        }
        if (const uint8_t* const to = match_end(from, end, has_failed)) return {from, to};
      }
    }
    return {end, end};
  }

  // Where the match ends that begins at p in such a text (p < end), or null if none does. Matches
  // are not empty.
  const uint8_t* match_at(const uint8_t* text, const uint8_t* p, const uint8_t* end) const {
    if (is_barred(text, p)) return nullptr;
    return match_end(p, end, [](size_t, const uint8_t*) { return false; });
  }

 private:
  // As match_at, whatever is before p. is_hopeless(row, p): whether it is known that no match
  // follows from there.
  template <typename IsHopeless>
  const uint8_t* match_end(const uint8_t* p, const uint8_t* end, IsHopeless&& is_hopeless) const {
    const uint8_t* found = nullptr;
    size_t row = width_;
    while (p != end && !is_hopeless(row, p)) {
      const auto [of_p, size] = look(p, end);
      const bool is_last = *p == '\n' && end - p == 1;
      const uint32_t step = steps_[row + (is_last ? width_ - 2 : of_p)];
      if (step & 1) found = p;
      row = step >> 1;
      if (row == 0) return found;
      p += size;
    }
    return p == end && (steps_[row + width_ - 1] & 1) ? end : found;
  }

  // Whether no match may begin at p for what is before it.
  bool is_barred(const uint8_t* text, const uint8_t* p) const {
    return looks_behind_ && p != text && is(kNotBehind, character_before(text, p), p);
  }

  struct Symbol {
    size_t number;
    uint32_t size;  // of the character in bytes
  };
  Symbol look(const uint8_t* p, const uint8_t* end) const {
    const auto [code_point, size] = decode_utf8(p, end);
    return {symbols_[code_point == kMalformed ? 0xDC00u | *p : code_point], size};
  }
  bool is(uint8_t role, const uint8_t* p, const uint8_t* end) const {
    return ((*p < 0x80 ? of_byte_[*p] : roles_[look(p, end).number]) & role) != 0;
  }

  // The first character of [p, end) that is required.
  const uint8_t* skip(const uint8_t* p, const uint8_t* end) const {
    if (are_few_)
      for (; static_cast<size_t>(end - p) >= AsciiBlock::kSize; p += AsciiBlock::kSize) {
        const AsciiBlock block(p);
        Positions found = 0;
        for (const char value : few_) found |= block.equal(value);
        if (found != 0) return p + std::countr_zero(found);
      }
    for (; p != end; p += look(p, end).size) {
      while (p != end && !(of_byte_[*p] & kRequired)) ++p;
      if (p == end || is(kRequired, p, end)) break;
    }
    return p;
  }

  std::vector<uint8_t> symbols_, roles_;
  std::vector<uint32_t> steps_;  // as given, with the first step of the next state for its number
  size_t width_;
  std::array<uint8_t, 0x100> of_byte_{};  // roles of ASCII; at other bytes, of all other characters
  std::array<char, 3> few_{};             // the required characters, where they are so few
  bool are_few_ = false;
  bool looks_behind_ = false;
};

// The matches of a pattern in [begin, end), and the text between them: a scanner as that of
// scanner.h.
class TableScanner {
 public:
  TableScanner(const PatternTable& table, const uint8_t* begin, const uint8_t* end)
      : table_(&table), text_(begin), at_(begin), end_(end) {}

  bool next(const uint8_t*& begin, const uint8_t*& end) {
    if (at_ == end_) return false;
    begin = at_;
    const uint8_t* match_end = match_end_ ? match_end_ : table_->match_at(text_, at_, end_);
    match_end_ = nullptr;
    if (!match_end) {
      const PatternTable::Match match = table_->find(text_, at_, end_);
      if (match.begin != end_) match_end_ = match.end;
      match_end = match.begin;  // of the text before it
    }
    end = at_ = match_end;
    return true;
  }

 private:
  const PatternTable* table_;
  const uint8_t* text_;
  const uint8_t* at_;
  const uint8_t* end_;
  const uint8_t* match_end_ = nullptr;  // of the match that begins at at_, where it is known
};

}  // namespace bpe
