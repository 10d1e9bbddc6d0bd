// All words of a corpus as one flat array of symbols, which merges edit in place.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace bpe {

// Every word is a header, which holds how often it occurs, and one slot for each initial symbol. A
// last header ends the last word.
//
//   slots   H  l  o  w  H  l  o  w  e  r  H
//
// The count is so near that finding it does not wait for memory again. One slot holds counts
// below 2^29; the header of a greater one is wide, three slots of 29 bits each. A merged symbol
// keeps its first slot; its second and its last slot hold a tag with its width in slots, so both
// neighbours are found in constant time, in a word of a megabyte too. The slots between are tagged
// as well, so a position that was merged away is never taken for a symbol.
class WordArray {
 public:
  using Position = uint32_t;
  static constexpr Position kNone = 0;  // slot 0 is a header, never a symbol

  WordArray() { slots_.push_back(kHeader); }

  // Adds a word of `length` symbols, the i-th of which is symbol_at(i).
  template <typename SymbolAt>
  void add(size_t length, int64_t count, SymbolAt&& symbol_at) {
    if (slots_.size() + length + kWideHeader >= kMaxSlots)
      throw std::length_error(
          "the distinct pre-tokens hold more than 4,294,967,290 symbols (one more for each "
          "pre-token "
          "itself, three where it occurs 536,870,912 times or more): prune rare ones");
    if (length > kPayload) throw std::length_error("a pre-token is longer than 2^30 symbols");
    const uint64_t bits = static_cast<uint64_t>(count);
    if (bits <= kCount) {
      slots_.back() = kHeader | static_cast<uint32_t>(bits);
    } else {
      slots_.back() = kHeader | kWide | static_cast<uint32_t>(bits >> 2 * kCountBits);
      slots_.push_back(kHeader | kWide | static_cast<uint32_t>(bits >> kCountBits & kCount));
      slots_.push_back(kHeader | kWide | static_cast<uint32_t>(bits & kCount));
    }
    if (length > kWalk) long_words_.push_back(static_cast<Position>(slots_.size()));
    for (size_t i = 0; i < length; ++i) slots_.push_back(symbol_at(i));
    slots_.push_back(kHeader);
  }

  // Address space for headers that are wide; memory is what is written.
  void reserve(size_t symbols, size_t words) { slots_.reserve(symbols + words * kWideHeader + 1); }

  // Calls visit(first, end, count) for each word: its symbols are before `end`.
  template <typename Visit>
  void each_word(Visit&& visit) const {
    for (size_t header = 0, end; header + 1 < slots_.size(); header = end) {
      const size_t first = header + (is_wide(slots_[header]) ? kWideHeader : 1);
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
    return *(std::upper_bound(long_words_.begin(), long_words_.end(), symbol) - 1);
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

  static constexpr uint32_t kWide = 0x20000000u;  // in each slot of such a header
  static constexpr size_t kWideHeader = 3;
  static constexpr int kCountBits = 29;
  static constexpr uint32_t kCount = (uint32_t{1} << kCountBits) - 1;

  // Of the word whose first symbol is at `first`, or would be.
  int64_t count_before(Position first) const {
    const uint32_t slot = slots_[first - 1];
    if (!is_wide(slot)) return slot & kCount;
    const uint64_t high = slots_[first - 3] & kCount, middle = slots_[first - 2] & kCount;
    return static_cast<int64_t>(high << 2 * kCountBits | middle << kCountBits | (slot & kCount));
  }

  static bool is_tag(uint32_t slot) { return slot >= kTag && slot < kHeader; }
  static bool is_header(uint32_t slot) { return slot >= kHeader; }
  static bool is_wide(uint32_t header) { return (header & kWide) != 0; }

  std::vector<uint32_t> slots_;
  std::vector<Position> long_words_;  // first positions, ascending
};

}  // namespace bpe
