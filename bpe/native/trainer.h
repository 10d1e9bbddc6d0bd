// Exact training: the merges of the textbook algorithm, in time proportional to what they change.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "pair_table.h"
#include "word_array.h"

namespace bpe {

// Which of several equally frequent pairs is merged first.
enum class Ties : uint8_t { bytes_min, bytes_max, id_min, huggingface, first_seen };

struct TrainerOptions {
  Ties ties = Ties::bytes_min;
  size_t max_tokens = 0;               // strings in the vocabulary, the alphabet included
  int64_t min_frequency = 1;           // a rarer pair is never merged
  std::vector<std::string> forbidden;  // strings no merge may make (special tokens)
};

struct Merge {
  SymbolPair pair;
  uint32_t token;       // the id of the merged string, which may be older than the merge
  int64_t count;        // occurrences of the pair, overlapping ones included
  int64_t tokens_left;  // symbols in the corpus after the merge
};

// Pairs wait in a heap by (count, tie rule). Entries are lazy: one is put in when a pair gains
// occurrences, and when it comes out with a count that has shrunk it goes back with the true one.
// A merge visits only the positions where its pair occurred. (The method of SentencePiece's and
// Hugging Face's trainers: a queue of pairs and, for each, where it occurs.)
class Trainer {
 public:
  // `alphabet`: the strings of symbols 0, 1, …, all different.
  Trainer(const std::vector<std::string>& alphabet, TrainerOptions options);

  // `symbol_at(i)` gives the i-th of `length` symbols. Words come in the order in which they were
  // first seen, if ties are broken by that.
  template <typename SymbolAt>
  void add_word(size_t length, int64_t count, SymbolAt&& symbol_at) {
    total_ += static_cast<unsigned __int128>(length) * static_cast<uint64_t>(count);
    if (total_ > kMaxTokens)
      throw std::overflow_error(
          "the corpus has more than 2^62 symbols: divide the counts by a common factor");
    words_.add(length, count, symbol_at);
  }
  void reserve(size_t symbols, size_t words) { words_.reserve(symbols, words); }

  // Does up to `merges` more merges; false when there is nothing left to do.
  bool step(size_t merges);

  const std::vector<Merge>& merges() const { return merges_; }
  const std::vector<std::string>& tokens() const { return tokens_; }
  int64_t initial_tokens() const { return static_cast<int64_t>(total_); }
  bool vocabulary_full() const { return tokens_.size() >= options_.max_tokens; }

 private:
  using Position = WordArray::Position;
  static constexpr int64_t kMaxTokens = int64_t{1} << 62;

  struct Entry {
    int64_t count;
    uint32_t pair;
    uint32_t detail;  // first_seen: where the pair occurs first; huggingface: which postings
  };

  void count_pairs();
  bool select(Entry& best);
  bool refreshed(Entry& top);
  bool before(const Entry& a, const Entry& b) const;
  int compare_tokens(uint32_t a, uint32_t b) const;
  void push(const Entry& entry);
  Position first_occurrence(uint32_t pair);
  bool occurs(SymbolPair pair, Position i) const;
  uint32_t token_for(SymbolPair pair);
  bool forbidden(SymbolPair pair) const;
  void merge(const Entry& best);
  void collect_positions(const Entry& best);
  void merge_at(Position i, Position j, uint32_t pair, uint32_t token);
  void merge_known_around(Position i);
  void gain(SymbolPair pair, Position i, int64_t count);
  void lose(SymbolPair pair, int64_t count);
  void publish_gains();

  TrainerOptions options_;
  WordArray words_;
  PairTable pairs_;
  std::vector<Entry> heap_;
  std::vector<std::string> tokens_;
  std::vector<uint64_t> prefixes_;  // the first 8 bytes of each token, to compare fast
  std::unordered_map<std::string, uint32_t> ids_;
  std::unordered_set<std::string> forbidden_;
  std::vector<Merge> merges_;
  unsigned __int128 total_ = 0;
  int64_t tokens_left_ = 0;
  bool counted_ = false;
  bool repeats_string_ = false;  // the merge under way makes a string that was there before
  int64_t keep_from_ = 1;        // pairs that occur fewer times are not queued

  std::vector<Position> positions_;                   // of the pair being merged
  std::vector<std::pair<uint32_t, Position>> gains_;  // (pair, position) of the merge under way
  std::vector<uint32_t> gained_;                      // the pairs among them, each once
};

}  // namespace bpe
