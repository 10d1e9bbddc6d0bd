// All words of a corpus as one flat array of symbols, which merges edit in place.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace bpe {

// Every word is a header slot, which holds its number, and one slot for each initial symbol.
//
//   slots   H0  l  o  w  H1  l  o  w  e  r  H2 ...
//
// A merged symbol keeps its first slot; its second and its last slot hold a tag with its width in
// slots, so both neighbours are found in constant time, in a word of a megabyte too. The slots
// between are tagged as well, so a position that was merged away is never taken for a symbol.
class WordArray {
 public:
  using Position = uint32_t;
  static constexpr Position kNone = 0;  // slot 0 is a header, never a symbol

  WordArray() { slots_.push_back(kHeader); }

  // Adds a word of `length` symbols, the i-th of which is symbol_at(i).
  template <typename SymbolAt>
  void add(size_t length, int64_t count, SymbolAt&& symbol_at) {
    if (slots_.size() + length >= kMaxSlots || counts_.size() >= kPayload)
      throw std::length_error(
          "the distinct pre-tokens hold more than 4,294,967,294 symbols: prune rare ones or use a "
          "pre-tokenizer that makes shorter pieces");
    if (length > kPayload) throw std::length_error("a pre-token is longer than 2^30 symbols");
    if (length > kWalk) long_words_.push_back(static_cast<Position>(slots_.size()));
    for (size_t i = 0; i < length; ++i) slots_.push_back(symbol_at(i));
    counts_.push_back(count);
    slots_.push_back(kHeader | static_cast<uint32_t>(counts_.size()));
  }

  void reserve(size_t symbols, size_t words) {
    slots_.reserve(symbols + words + 1);
    counts_.reserve(words);
  }

  size_t words() const { return counts_.size(); }
  size_t slots() const { return slots_.size(); }

  // The symbol at a position; a tag or a header compares unequal to every symbol.
  uint32_t at(Position i) const { return slots_[i]; }
  bool is_symbol(Position i) const { return slots_[i] < kTag; }
  void prefetch(Position i) const { __builtin_prefetch(&slots_[i], 1); }

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

  // The number of the word that symbol i belongs to: a short walk back to its header, or for
  // long words a binary search among the few there are.
  uint32_t word(Position i) const {
    const Position symbol = i;
    for (size_t step = 0; step <= kWalk; ++step) {
      const uint32_t slot = slots_[i - 1];
      if (is_header(slot)) return slot & kPayload;
      i = is_tag(slot) ? i - (slot & kPayload) : i - 1;
    }
    return long_word(symbol);
  }

  // The same for any slot of a word, a merged one too.
  uint32_t word_of_slot(Position slot) const {
    for (Position i = slot; slot - i <= kWalk; --i)
      if (is_header(slots_[i - 1])) return slots_[i - 1] & kPayload;
    return long_word(slot);
  }

  int64_t count(Position i) const { return counts_[word(i)]; }
  int64_t word_count(size_t word) const { return counts_[word]; }

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

  uint32_t long_word(Position slot) const {
    const auto start = std::upper_bound(long_words_.begin(), long_words_.end(), slot) - 1;
    return slots_[*start - 1] & kPayload;
  }

  static bool is_tag(uint32_t slot) { return slot >= kTag && slot < kHeader; }
  static bool is_header(uint32_t slot) { return slot >= kHeader; }

  std::vector<uint32_t> slots_;
  std::vector<int64_t> counts_;
  std::vector<Position> long_words_;  // first positions, ascending
};

}  // namespace bpe
