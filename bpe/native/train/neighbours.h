// What is next to the occurrences of the pair that a merge joins, added up by symbol.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "train/word_array.h"

namespace bpe {

// The symbols on one side. A merge changes the counts of the pairs that they are part of by the
// same amounts: the old pair loses what the new one gains. So each is looked up once, not at every
// occurrence.
class Neighbours {
 public:
  using Position = WordArray::Position;

  struct Neighbour {
    uint32_t symbol;
    uint32_t occurrences;
    int64_t count;       // of the words that they are in
    uint32_t gained;     // the new pair
    Position* postings;  // of it, those still to be written
  };

  // The symbol is next to one more occurrence; `position` is where the new pair begins.
  void add(uint32_t symbol, Position position, int64_t count) {
    if (symbol >= places_.size()) places_.resize(symbol + symbol / 2 + 1, kNone);
    uint32_t& place = places_[symbol];
    if (place == kNone) {
      place = static_cast<uint32_t>(all_.size());
      all_.push_back({symbol, 0, 0, 0, nullptr});
    }
    all_[place].occurrences += 1;
    all_[place].count += count;
    positions_.emplace_back(place, position);
  }

  // In the order in which they were met.
  std::vector<Neighbour>& all() { return all_; }

  // Writes each position to the postings of its neighbour, in the order in which they came.
  void write_positions() {
    for (const auto& [place, position] : positions_) *all_[place].postings++ = position;
  }

  void clear() {
    for (const Neighbour& neighbour : all_) places_[neighbour.symbol] = kNone;
    all_.clear();
    positions_.clear();
  }

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;

  std::vector<uint32_t> places_;  // of each symbol in all_
  std::vector<Neighbour> all_;
  std::vector<std::pair<uint32_t, Position>> positions_;
};

}  // namespace bpe
