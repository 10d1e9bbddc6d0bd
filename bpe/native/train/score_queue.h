// Pairs that wait to be merged, the one first that most often is together when its parts occur.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "train/pair_queue.h"
#include "train/pair_table.h"
#include "train/tie_breaker.h"

namespace bpe {

// The score of WordPiece, count(ab) / (count(a) · count(b)), as an exact fraction.
struct Score {
  int64_t pair = 0;
  int64_t left = 1;
  int64_t right = 1;

  auto operator<=>(const Score& other) const {
    return product(pair, other.left, other.right) <=> product(other.pair, left, right);
  }
  bool operator==(const Score& other) const { return (*this <=> other) == 0; }

 private:
  // Of three numbers from 0 to 2^63 - 1: 192 bits, the highest 64 first.
  static std::array<uint64_t, 3> product(int64_t a, int64_t b, int64_t c) {
    using Wide = unsigned __int128;
    const Wide ab = static_cast<Wide>(a) * static_cast<uint64_t>(b);
    const Wide low = static_cast<Wide>(static_cast<uint64_t>(ab)) * static_cast<uint64_t>(c);
    const Wide high = (ab >> 64) * static_cast<uint64_t>(c) + (low >> 64);
    return {static_cast<uint64_t>(high >> 64), static_cast<uint64_t>(high),
            static_cast<uint64_t>(low)};
  }
};

// A heap by (score, tie rule) in which every pair has one place. A score rises when a symbol of
// its pair is used up elsewhere, so entries cannot be lazy: after each merge all pairs of the
// symbols whose counts have changed move to their new places.
class ScoreQueue : public PairQueue {
 public:
  // Pairs that occur fewer times than `least`, which is at least 1, are left out.
  ScoreQueue(const TieBreaker& ties, const PairTable& pairs, int64_t least)
      : ties_(ties), pairs_(pairs), least_(least) {}

  void fill() override {
    for (uint32_t pair = 0; pair < pairs_.size(); ++pair) gained(pair);
  }

  void count_symbol(uint32_t symbol, int64_t times) override {
    if (symbol >= symbols_.size()) symbols_.resize(symbol + 1);
    Symbol& entry = symbols_[symbol];
    entry.count += times;
    if (!std::exchange(entry.changed, true)) changed_.push_back(symbol);
  }

  void gained(uint32_t pair) override {
    if (pair >= entries_.size()) entries_.resize(pairs_.size());
    if (pairs_[pair].count < least_ || entries_[pair].place != kOut) return;
    const SymbolPair symbols = pairs_[pair].pair;
    symbols_[symbols.left].pairs.push_back(pair);
    if (symbols.left != symbols.right) symbols_[symbols.right].pairs.push_back(pair);
    entries_[pair].place = static_cast<uint32_t>(heap_.size());
    heap_.push_back(pair);
    refresh(pair);
    move_up(entries_[pair].place);
  }

  // Moves all pairs of the symbols that were counted anew to where they belong.
  void update() override {
    for (const uint32_t symbol : changed_) {
      symbols_[symbol].changed = false;
      std::erase_if(symbols_[symbol].pairs, [this](uint32_t pair) { return !updated(pair); });
    }
    changed_.clear();
  }

  std::optional<Candidate> top() override {
    if (heap_.empty()) return std::nullopt;
    return Candidate{pairs_[heap_.front()].count, heap_.front(), 0};
  }
  void pop() override { remove(heap_.front()); }

  bool are_tied(const Candidate& a, const Candidate& b) const override {
    return entries_[a.pair].score == entries_[b.pair].score;
  }

 private:
  static constexpr uint32_t kOut = 0xFFFFFFFFu;

  struct Symbol {
    int64_t count = 0;
    bool changed = false;
    std::vector<uint32_t> pairs;  // those in the heap; others may linger until they are met
  };
  struct Entry {
    Score score;  // as it was when the pair was put in its place
    WordArray::Position first = 0;
    uint32_t place = kOut;
  };

  // Moves a pair; false if it is not, or no longer, in the heap.
  bool updated(uint32_t pair) {
    Entry& entry = entries_[pair];
    if (entry.place == kOut) return false;
    if (pairs_[pair].count < least_) {
      remove(pair);
      return false;
    }
    if (refresh(pair)) {
      move_up(entry.place);
      move_down(entry.place);
    }
    return true;
  }

  bool refresh(uint32_t pair) {
    const PairRecord& record = pairs_[pair];
    Entry& entry = entries_[pair];
    const Score score{record.count, symbols_[record.pair.left].count,
                      symbols_[record.pair.right].count};
    const WordArray::Position first = ties_.first(pair);
    if (score == entry.score && first == entry.first) return false;
    entry.score = score;
    entry.first = first;
    return true;
  }

  bool before(uint32_t a, uint32_t b) const {
    const Entry &x = entries_[a], &y = entries_[b];
    const auto order = x.score <=> y.score;
    return order != 0 ? order > 0 : ties_.before({0, a, x.first}, {0, b, y.first});
  }

  void put(uint32_t pair, size_t place) {
    heap_[place] = pair;
    entries_[pair].place = static_cast<uint32_t>(place);
  }

  void move_up(size_t place) {
    const uint32_t pair = heap_[place];
    for (; place > 0 && before(pair, heap_[(place - 1) / 2]); place = (place - 1) / 2)
      put(heap_[(place - 1) / 2], place);
    put(pair, place);
  }

  void move_down(size_t place) {
    const uint32_t pair = heap_[place];
    for (;;) {
      size_t child = 2 * place + 1;
      if (child >= heap_.size()) break;
      if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
      if (!before(heap_[child], pair)) break;
      put(heap_[child], place);
      place = child;
    }
    put(pair, place);
  }

  void remove(uint32_t pair) {
    const uint32_t place = std::exchange(entries_[pair].place, kOut);
    const uint32_t last = heap_.back();
    heap_.pop_back();
    if (last == pair) return;
    put(last, place);
    move_up(place);
    move_down(entries_[last].place);
  }

  const TieBreaker& ties_;
  const PairTable& pairs_;
  int64_t least_;
  std::vector<Symbol> symbols_;
  std::vector<uint32_t> changed_;
  std::vector<Entry> entries_;  // of each pair
  std::vector<uint32_t> heap_;  // pairs
};

}  // namespace bpe
