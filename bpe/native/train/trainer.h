// Exact training: the merges of the textbook algorithm, in time proportional to what they change.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "train/neighbours.h"
#include "train/pair_counts.h"
#include "train/pair_queue.h"
#include "train/pair_table.h"
#include "train/tie_breaker.h"
#include "train/token_strings.h"
#include "train/word_array.h"

namespace bpe {

// A word that is never merged, and takes a place in the vocabulary by how often it occurs.
struct WholeWord {
  std::string token;
  int64_t count;
};

// A merge of a tokenizer that is extended.
struct KnownMerge {
  SymbolPair pair;
  uint32_t token;
};

struct TrainerOptions {
  TieRule ties = kTieRules.front();
  PairCounts pair_counts = PairCounts::overlapping;
  bool by_score = false;      // WordPiece: score before count
  std::string prefix;         // WordPiece: of what continues a word; a merge drops it
  size_t max_tokens = 0;      // strings in the vocabulary, the alphabet included
  int64_t min_frequency = 1;  // a rarer pair is never merged
  std::unordered_set<std::string> forbidden;  // strings no merge may make (special tokens)
  std::vector<WholeWord> whole_words;         // the most frequent first
  std::vector<KnownMerge> known;  // ranked before all merges; the words hold none of these pairs
  int64_t pruned = 0;  // what words that are not here can have added to the count of any pair
};

struct Merge {
  SymbolPair pair;
  uint32_t token;       // the id of the merged string, which may be older than the merge
  int64_t count;        // occurrences of the pair, as TrainerOptions::pair_counts counts them
  int64_t tokens_left;  // symbols in the corpus after the merge
};

struct WholeToken {
  uint32_t token;
  int64_t count;
  size_t merges_before;
};

// Pairs wait in a queue, by count or by score. A merge visits only the positions where its pair
// occurred. (The method of SentencePiece's and Hugging Face's trainers: a queue of pairs and, for
// each, where it occurs.)
class Trainer {
 public:
  // `alphabet`: the strings of symbols 0, 1, …, all different.
  Trainer(const std::vector<std::string>& alphabet, TrainerOptions options);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // `symbol_at(i)` gives the i-th of `length` symbols. Words come in the order in which they were
  // first seen, if ties are broken by that.
  template <typename SymbolAt>
  void add_word(size_t length, int64_t count, SymbolAt&& symbol_at) {
    add_apart(static_cast<unsigned __int128>(length) * static_cast<uint64_t>(count));
    words_.add(length, count, symbol_at);
  }
  // Tokens of the corpus with which nothing merges.
  void add_apart(unsigned __int128 tokens) {
    total_ += tokens;
    if (total_ > kMaxTokens)
      throw std::overflow_error(
          "the corpus has more than 2^62 symbols: divide the counts by a common factor");
  }
  void reserve(size_t symbols, size_t words) { words_.reserve(symbols, words); }

  // The merge that comes next, whatever room there is, as long as nothing else is done: left,
  // right, count.
  std::optional<std::tuple<uint32_t, uint32_t, int64_t>> peek();

  // Does up to `merges` more merges; false when there is nothing left to do.
  bool step(size_t merges);

  // The two halves of a step, where several trainers merge the same pairs: one of them chooses the
  // pair, none when there is nothing left to do; then all of them merge it. It need not occur here.
  // Throws std::invalid_argument where there is no such symbol.
  std::optional<std::pair<uint32_t, uint32_t>> choose();
  void merge(uint32_t left, uint32_t right);

  // After the last merge: the whole words that are left, while there is room.
  void finish() { add_whole_words(options_.min_frequency); }

  const std::vector<Merge>& merges() const { return merges_; }
  const std::vector<std::string>& tokens() const { return tokens_.all(); }
  const std::vector<WholeToken>& whole_tokens() const { return whole_tokens_; }
  const std::vector<uint32_t>& repeated() const { return repeated_; }
  const std::vector<uint32_t>& tied() const { return tied_; }
  int64_t initial_tokens() const { return static_cast<int64_t>(total_); }
  int64_t tokens_left() const { return counted_ ? tokens_left_ : initial_tokens(); }
  bool vocabulary_full() const { return tokens_.size() >= options_.max_tokens; }

  // The number of the first merge, made or missing, that the pruned words could have changed.
  std::optional<size_t> first_affected() const { return first_affected_; }

 private:
  using Position = WordArray::Position;
  static constexpr int64_t kMaxTokens = int64_t{1} << 62;
  static constexpr size_t kNever = ~size_t{0};

  // A pair that was merged before, and what it became.
  struct Made {
    size_t rank = kNever;  // known merges come first
    uint32_t pair = PairTable::kMissing, token = 0;
  };

  // Disjoint pairs of equal symbols: what those of a stretch keep, although one of them is merged
  // with the other neighbour, and what the pair of two new tokens does not gain.
  struct EqualPairs {
    int64_t kept_before = 0, kept_after = 0, overlapping = 0;
  };

  bool disjoint() const { return options_.pair_counts == PairCounts::disjoint; }
  // Whether each occurrence of a pair counts, whatever is around it.
  bool is_counted(SymbolPair pair) const { return pair.left != pair.right || !disjoint(); }
  void count_pairs();
  std::optional<Candidate> next();
  std::optional<Candidate> due();
  std::optional<Candidate> best(uint32_t but = PairTable::kMissing);
  void add_whole_words(int64_t least);
  bool is_tied(const Candidate& chosen);
  void watch_pruned(const std::optional<Candidate>& chosen);
  std::string joined(SymbolPair pair) const;
  bool is_forbidden(uint32_t pair) const;
  uint32_t token_for(SymbolPair pair);
  Made made_of(Position left, Position right) const;
  void merge_chosen(const Candidate& chosen);
  void collect_positions(uint32_t pair);
  void merge_positions(uint32_t chosen, uint32_t token);
  void count_neighbours(SymbolPair pair, uint32_t token, const EqualPairs& equal);
  void forget_stretches(Position word);
  void count_stretches(Position word);
  void merge_at(Position i, Position j, uint32_t pair, uint32_t token);
  void used_up(SymbolPair pair, uint32_t token, int64_t count);
  void merge_known_around(Position i);
  void gain(SymbolPair pair, Position i, int64_t count);
  void lose(SymbolPair pair, int64_t count);
  void file_gains();
  void queue_gains();

  TrainerOptions options_;
  WordArray words_;
  PairTable pairs_;
  TokenStrings tokens_;
  TieBreaker tie_breaker_;
  std::unique_ptr<PairQueue> queue_;
  std::vector<Merge> merges_;
  std::unordered_map<uint32_t, Made> made_;  // of each pair
  std::vector<uint32_t> repeated_;           // the merges that make a string that was there before
  std::vector<uint32_t> tied_;               // the merges that the tie rule chose
  std::vector<WholeToken> whole_tokens_;
  size_t next_whole_ = 0;
  std::optional<size_t> first_affected_;
  unsigned __int128 total_ = 0;
  int64_t tokens_left_ = 0;
  bool counted_ = false;
  bool repeats_string_ = false;  // the merge under way makes a string that was there before

  // Of the merge under way:
  std::vector<Position> positions_;                   // where its pair may occur
  Neighbours before_, after_;                         // what is next to it
  std::vector<std::pair<uint32_t, Position>> gains_;  // (pair, position), where a string repeats
  std::vector<uint32_t> gained_;                      // the pairs that it brought, each once
  std::vector<uint32_t> forgotten_;  // the pairs of equal symbols that a word held before it
};

}  // namespace bpe
