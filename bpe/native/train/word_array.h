// All words of a corpus as one flat array of symbols, which merges edit in place.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace bpe {

// Every word is a header of three slots, which hold how often it occurs, 30 bits each, and one slot
// for each initial symbol. A last header ends the last word.
//
//   slots   H H H  l  o  w  H H H  l  o  w  e  r  H
//
// The count stands so near that finding it does not wait for memory again. A merged symbol keeps
// its first slot; its second and its last slot hold a tag with its width in slots, so both
// neighbours are found in constant time, in a word of a megabyte too. The slots between are tagged
// as well, so a position that was merged away is never taken for a symbol.
class WordArray {
 public:
  using Position = uint32_t;
  static constexpr Position kNone = 0;   // slot 0 is a header, never a symbol
  static constexpr Position kFirst = 3;  // the first symbol of the first word

  WordArray() { slots_.push_back(kHeader); }

  // Adds a word of `length` symbols, the i-th of which is symbol_at(i).
  template <typename SymbolAt>
  void add(size_t length, int64_t count, SymbolAt&& symbol_at) {
    if (slots_.size() + length + kFirst >= kMaxSlots)
      throw std::length_error(
          "the distinct pre-tokens hold more than 4,294,967,290 symbols (three of them for each "
          "pre-token itself): prune rare ones");
    if (length > kPayload) throw std::length_error("a pre-token is longer than 2^30 symbols");
    const uint64_t bits = static_cast<uint64_t>(count);
    slots_.back() = kHeader | static_cast<uint32_t>(bits >> 60);
    slots_.push_back(kHeader | static_cast<uint32_t>(bits >> 30 & kPayload));
    slots_.push_back(kHeader | static_cast<uint32_t>(bits & kPayload));
    if (length > kWalk) long_words_.push_back(static_cast<Position>(slots_.size()));
    for (size_t i = 0; i < length; ++i) slots_.push_back(symbol_at(i));
    slots_.push_back(kHeader);
  }

  void reserve(size_t symbols, size_t words) { slots_.reserve(symbols + words * kFirst + 1); }

  // Calls visit(first, end, count) for each word: its symbols lie before `end`.
  template <typename Visit>
  void each_word(Visit&& visit) const {
    for (size_t first = kFirst, end; first < slots_.size(); first = end + kFirst) {
      for (end = first; !is_header(slots_[end]);) ++end;
      visit(static_cast<Position>(first), static_cast<Position>(end),
            count_before(static_cast<Position>(first)));
    }
  }

  // The symbol at a position; a tag or a header compares unequal to every symbol.
  uint32_t at(Position i) const { return slots_[i]; }
  bool is_symbol(Position i) const { return slots_[i] < kTag; }

  // Asks for the memory that a merge at i will look at: the symbols, and the header before them.
  void prefetch(Position i) const {
    __builtin_prefetch(&slots_[i], 1);
    __builtin_prefetch(&slots_[i - std::min<Position>(i, 10)]);
  }

  // The position after symbol i: the next symbol of the word, or the header that ends it.
  Position after(Position i) const {
    const uint32_t slot = slots_[i + 1];
    return is_tag(slot) ? i + (slot & kPayload) : i + 1;
  }

  Position next(Position i) const {
    const Position k = after(i);
    return is_symbol(k) ? k : kNone;
  }

  Position previous(Position i) const {
    const uint32_t slot = slots_[i - 1];
    if (is_tag(slot)) return i - (slot & kPayload);
    return is_header(slot) ? kNone : i - 1;
  }

  // The first symbol of the word that symbol i belongs to: a short walk back to the header, or for
  // long words a binary search among the few there are.
  Position word(Position i) const {
    const Position symbol = i;
    for (size_t step = 0; step <= kWalk; ++step) {
      const uint32_t slot = slots_[i - 1];
      if (is_header(slot)) return i;
      i = is_tag(slot) ? i - (slot & kPayload) : i - 1;
    }
    return long_word(symbol);
  }

  // The same for any slot of a word, a merged one too.
  Position word_of_slot(Position slot) const {
    for (Position i = slot; slot - i <= kWalk; --i)
      if (is_header(slots_[i - 1])) return i;
    return long_word(slot);
  }

  int64_t count(Position i) const { return count_before(word(i)); }

  // Makes one symbol of the symbols at i and j = next(i).
  void merge(Position i, Position j, uint32_t symbol) {
    const Position end = after(j);
    const uint32_t tag = kTag | (end - i);
    slots_[i] = symbol;
    slots_[j] = tag;
    slots_[i + 1] = tag;
    slots_[end - 1] = tag;
  }

 private:
  static constexpr uint32_t kTag = 0x80000000u;
  static constexpr uint32_t kHeader = 0xC0000000u;
  static constexpr uint32_t kPayload = 0x3FFFFFFFu;
  static constexpr size_t kMaxSlots = 0xFFFFFFFFu;
  static constexpr size_t kWalk = 32;

  Position long_word(Position slot) const {
    return *(std::upper_bound(long_words_.begin(), long_words_.end(), slot) - 1);
  }

  // Of the word whose first symbol is at `first`, or would be.
  int64_t count_before(Position first) const {
    const uint64_t high = slots_[first - 3] & kPayload, middle = slots_[first - 2] & kPayload;
    return static_cast<int64_t>(high << 60 | middle << 30 | (slots_[first - 1] & kPayload));
  }

  static bool is_tag(uint32_t slot) { return slot >= kTag && slot < kHeader; }
  static bool is_header(uint32_t slot) { return slot >= kHeader; }

  std::vector<uint32_t> slots_;
  std::vector<Position> long_words_;  // first positions, ascending
};

}  // namespace bpe
