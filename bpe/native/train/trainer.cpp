#include "train/trainer.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "train/count_queue.h"
#include "train/score_queue.h"

namespace bpe {

namespace {

// Pairs that occur fewer times are not queued, but to be compared with where words were pruned.
int64_t least_queued(const TrainerOptions& options) {
  return options.pruned > 0 ? 1 : std::max<int64_t>(options.min_frequency, 1);
}

// Loops over words and pairs wait for memory: so many steps before, it is asked for.
constexpr size_t kAhead = 16;

}  // namespace

Trainer::Trainer(const std::vector<std::string>& alphabet, TrainerOptions options)
    : options_(std::move(options)),
      tokens_(alphabet),
      tie_breaker_(options_.ties, tokens_, words_, pairs_),
      queue_(std::make_unique<CountQueue>(tie_breaker_, pairs_, least_queued(options_))) {
  options_.min_frequency = std::max<int64_t>(options_.min_frequency, 1);
  if (options_.by_score)
    queue_ = std::make_unique<ScoreQueue>(tie_breaker_, pairs_, options_.min_frequency);
  if (options_.by_score && (options_.pruned > 0 || !options_.known.empty()))
    throw std::invalid_argument("scores go neither with pruned words nor with known merges");
  for (size_t rank = 0; rank < options_.known.size(); ++rank) {
    const KnownMerge& merge = options_.known[rank];
    if (std::max({merge.pair.left, merge.pair.right, merge.token}) >= tokens_.size())
      throw std::invalid_argument("a known merge is of symbols that are not in the alphabet");
    const uint32_t pair = pairs_.find_or_add(merge.pair);
    made_.try_emplace(pair, Made{rank, pair, merge.token});
  }
}

std::optional<std::tuple<uint32_t, uint32_t, int64_t>> Trainer::peek() {
  if (!counted_) count_pairs();
  const std::optional<Candidate> chosen = due();
  if (!chosen) return std::nullopt;
  const SymbolPair pair = pairs_[chosen->pair].pair;
  return std::tuple(pair.left, pair.right, chosen->count);
}

bool Trainer::step(size_t merges) {
  for (; merges > 0; --merges) {
    const std::optional<Candidate> chosen = next();
    if (!chosen) return false;
    merge_chosen(*chosen);
  }
  return true;
}

std::optional<std::pair<uint32_t, uint32_t>> Trainer::choose() {
  const std::optional<Candidate> chosen = next();
  if (!chosen) return std::nullopt;
  const SymbolPair pair = pairs_[chosen->pair].pair;
  return std::pair(pair.left, pair.right);
}

void Trainer::merge(uint32_t left, uint32_t right) {
  if (std::max(left, right) >= tokens_.size()) throw std::invalid_argument("no such symbol");
  if (!counted_) count_pairs();
  const uint32_t number = pairs_.find_or_add({left, right});
  merge_chosen({pairs_[number].count, number, 0});
}

// The pair to merge next, out of its queue; none when there is nothing left to do.
std::optional<Candidate> Trainer::next() {
  if (!counted_) count_pairs();
  if (vocabulary_full()) return std::nullopt;
  const std::optional<Candidate> chosen = due();
  if (chosen) {
    add_whole_words(chosen->count);
    if (vocabulary_full()) return std::nullopt;
    queue_->pop();
  }
  watch_pruned(chosen);
  if (chosen && is_tied(*chosen)) tied_.push_back(static_cast<uint32_t>(merges_.size()));
  return chosen;
}

// Two passes over all words: how often each pair occurs and at how many positions, then where.
void Trainer::count_pairs() {
  counted_ = true;
  tokens_left_ = initial_tokens();
  const auto each_pair = [this](auto&& visit) {
    words_.each_word([&](Position first, Position end, int64_t count) {
      bool taken = false;  // the symbol at i, by a pair of equal symbols that ends with it
      for (Position i = first; i + 1 < end; ++i) {
        const SymbolPair pair{words_.at(i), words_.at(i + 1)};
        const bool equal = pair.left == pair.right;
        const bool overlaps = equal && taken && disjoint();
        visit(pair, i, overlaps ? 0 : count);
        taken = equal && !overlaps;
      }
    });
  };
  each_pair([this](SymbolPair pair, Position, int64_t count) {
    PairRecord& record = pairs_[pairs_.find_or_add(pair)];
    record.count += count;
    ++record.postings.size;
  });
  for (uint32_t pair = 0; pair < pairs_.size(); ++pair) {
    Postings& postings = pairs_[pair].postings;
    postings = pairs_.arena().take(postings.size);
  }
  each_pair([this](SymbolPair pair, Position i, int64_t) {
    Postings& postings = pairs_[pairs_.find(pair)].postings;
    postings.begin()[postings.cursor++] = i;
  });
  for (uint32_t pair = 0; pair < pairs_.size(); ++pair) pairs_[pair].postings.cursor = 0;
  if (options_.by_score)
    words_.each_word([this](Position first, Position end, int64_t count) {
      for (Position i = first; i < end; ++i) queue_->count_symbol(words_.at(i), count);
    });
  queue_->fill();
}

// The pair to merge next; it stays in its queue.
std::optional<Candidate> Trainer::due() {
  const std::optional<Candidate> first = best();
  return first && first->count >= options_.min_frequency ? first : std::nullopt;
}

// The first pair of its queue, in which it stays; pairs that no merge may join, and entries of
// `but`, leave it.
std::optional<Candidate> Trainer::best(uint32_t but) {
  for (;; queue_->pop()) {
    const std::optional<Candidate> first = queue_->top();
    if (!first || (first->pair != but && !is_forbidden(first->pair))) return first;
  }
}

// Gives ids to the whole words that occur at least that often, while there is room.
void Trainer::add_whole_words(int64_t least) {
  least = std::max(least, options_.min_frequency);
  for (; next_whole_ < options_.whole_words.size() && !vocabulary_full(); ++next_whole_) {
    const WholeWord& word = options_.whole_words[next_whole_];
    if (word.count < least) return;
    if (options_.forbidden.contains(word.token)) continue;
    const auto [token, added] = tokens_.find_or_add(word.token);
    if (added) whole_tokens_.push_back({token, word.count, merges_.size()});
  }
}

// Whether another pair is as good as the chosen one, which is out of the queue by now. Older
// entries of that one go too: once it is merged, it does not occur.
bool Trainer::is_tied(const Candidate& chosen) {
  const std::optional<Candidate> rival = best(chosen.pair);
  return rival && queue_->are_tied(chosen, *rival);
}

// With the pruned words, each pair would have occurred as often or up to `pruned` times more. So
// a choice is certain while the chosen pair, which is out of the queue by now, leads by more than
// that; and that nothing is left to choose, while no pair comes so close to the least frequency.
void Trainer::watch_pruned(const std::optional<Candidate>& chosen) {
  if (options_.pruned == 0 || first_affected_) return;
  const std::optional<Candidate> rival = best();
  const int64_t possible = (rival ? rival->count : 0) + options_.pruned;
  if (possible >= (chosen ? chosen->count : options_.min_frequency))
    first_affected_ = merges_.size();
}

std::string Trainer::joined(SymbolPair pair) const {
  std::string_view right = tokens_[pair.right];
  if (!options_.prefix.empty() && right.starts_with(options_.prefix))
    right.remove_prefix(options_.prefix.size());
  return tokens_[pair.left] + std::string(right);
}

bool Trainer::is_forbidden(uint32_t pair) const {
  return !options_.forbidden.empty() && options_.forbidden.contains(joined(pairs_[pair].pair));
}

uint32_t Trainer::token_for(SymbolPair pair) {
  const auto [token, added] = tokens_.find_or_add(joined(pair));
  repeats_string_ = !added;
  if (repeats_string_) repeated_.push_back(static_cast<uint32_t>(merges_.size()));
  return token;
}

void Trainer::merge_chosen(const Candidate& chosen) {
  const SymbolPair pair = pairs_[chosen.pair].pair;
  const uint32_t token = token_for(pair);
  collect_positions(chosen.pair);
  pairs_.drop_postings(chosen.pair);
  made_[chosen.pair] = {options_.known.size() + merges_.size(), chosen.pair, token};
  merges_.push_back({pair, token, chosen.count, 0});
  merge_positions(chosen.pair, token);
  queue_gains();
  merges_.back().tokens_left = tokens_left_;
}

// The positions where the pair may occur, ascending, into positions_.
void Trainer::collect_positions(uint32_t pair) {
  const Postings& first = pairs_[pair].postings;
  positions_.assign(first.begin(), first.end());
  const auto* later = pairs_.later_postings(pair);
  if (later == nullptr) return;
  for (const Postings& postings : *later)
    positions_.insert(positions_.end(), postings.begin(), postings.end());
  std::sort(positions_.begin(), positions_.end());
  positions_.erase(std::unique(positions_.begin(), positions_.end()), positions_.end());
}

// Merges the pair wherever it occurs.
void Trainer::merge_positions(uint32_t chosen, uint32_t token) {
  const SymbolPair pair = pairs_[chosen].pair;
  const auto next = [this](Position at) { return words_.next(at); };
  const auto previous = [this](Position at) { return words_.previous(at); };
  int64_t merged = 0;
  EqualPairs equal;
  uint32_t row = 0;                  // new tokens side by side, up to the last one
  Position word = WordArray::kNone;  // the one that is changed, where a string repeats
  for (size_t k = 0; k < positions_.size(); ++k) {
    if (k + kAhead < positions_.size()) words_.prefetch(positions_[k + kAhead]);
    const Position i = positions_[k];
    if (!occurs(words_, pair, i)) continue;
    const Position j = words_.after(i);
    if (repeats_string_) {  // at once, pairs that are merges already may come of it
      if (disjoint() && words_.word(i) != word) {
        count_stretches(word);
        word = words_.word(i);
        forget_stretches(word);
      }
      merge_at(i, j, chosen, token);
      merge_known_around(i);
      continue;
    }
    const int64_t count = words_.count(i);
    const Position before = words_.previous(i), after = words_.next(j);
    if (before != WordArray::kNone) before_.add(words_.at(before), before, count);
    if (after != WordArray::kNone) after_.add(words_.at(after), i, count);
    if (disjoint()) {
      // A stretch of n holds n / 2 pairs: it loses one with its last symbol if n is even.
      if (words_.at(before) == pair.left && equal_beside(words_, i, previous) % 2 == 0)
        equal.kept_before += count;
      if (words_.at(after) == pair.right &&
          (pair.left == pair.right || equal_beside(words_, j, next) % 2 == 0))
        equal.kept_after += count;
      row = words_.at(before) == token ? row + 1 : 1;
      if (row > 1 && row % 2 == 1) equal.overlapping += count;
    }
    words_.merge(i, j, token);
    merged += count;
  }
  if (repeats_string_) {
    count_stretches(word);
    return file_gains();
  }
  count_neighbours(pair, token, equal);
  pairs_[chosen].count -= merged;
  used_up(pair, token, merged);
}

// Of a token that was not there before, so that all the pairs it is part of are new.
void Trainer::count_neighbours(SymbolPair pair, uint32_t token, const EqualPairs& equal) {
  struct Side {
    Neighbours& neighbours;
    bool is_before;
    uint32_t old;  // the symbol of the pair that they stood next to
    int64_t kept;
  };
  const std::array<Side, 2> sides{Side{before_, true, pair.left, equal.kept_before},
                                  Side{after_, false, pair.right, equal.kept_after}};
  // Calls visit(neighbour, its pair with a symbol), which is in the cache by then, for all.
  const auto each = [this](const Side& side, uint32_t symbol, auto&& visit) {
    const auto pair_of = [&](const Neighbours::Neighbour& neighbour) {
      return side.is_before ? SymbolPair{neighbour.symbol, symbol}
                            : SymbolPair{symbol, neighbour.symbol};
    };
    std::vector<Neighbours::Neighbour>& all = side.neighbours.all();
    for (size_t n = 0; n < all.size(); ++n) {
      if (n + kAhead < all.size()) pairs_.prefetch_slot(pair_of(all[n + kAhead]));
      if (n + kAhead / 2 < all.size()) pairs_.prefetch_record(pair_of(all[n + kAhead / 2]));
      visit(all[n], pair_of(all[n]));
    }
  };
  // Gains come first: what a merge brings may be lost to the next one in the same word.
  for (const Side& side : sides)
    each(side, token, [&](Neighbours::Neighbour& neighbour, SymbolPair gained) {
      neighbour.gained = pairs_.find_or_add(gained);
      pairs_[neighbour.gained].count =
          neighbour.count - (gained.left == gained.right ? equal.overlapping : 0);
      gained_.push_back(neighbour.gained);
    });
  for (const Side& side : sides)
    each(side, side.old, [&](const Neighbours::Neighbour& neighbour, SymbolPair lost) {
      lose(lost, neighbour.count - (lost.left == lost.right ? side.kept : 0));
    });
  for (Neighbours* const side : {&before_, &after_}) {
    for (Neighbours::Neighbour& neighbour : side->all()) {
      Postings& postings = pairs_[neighbour.gained].postings;
      postings = pairs_.arena().take(neighbour.occurrences);
      neighbour.postings = postings.begin();
    }
    side->write_positions();
    side->clear();
  }
}

// Takes the pairs of equal symbols in a word out of their counts, until count_stretches.
void Trainer::forget_stretches(Position word) {
  const int64_t count = words_.count(word);
  each_stretch(words_, word, [&](uint32_t symbol, uint32_t length) {
    const uint32_t pair = pairs_.find({symbol, symbol});
    pairs_[pair].count -= count * (length / 2);
    forgotten_.push_back(pair);
  });
}

void Trainer::count_stretches(Position word) {
  if (word == WordArray::kNone) return;
  const int64_t count = words_.count(word);
  each_stretch(words_, word, [&](uint32_t symbol, uint32_t length) {
    pairs_[pairs_.find({symbol, symbol})].count += count * (length / 2);
  });
  for (const uint32_t pair : forgotten_)
    if (pairs_[pair].count == 0) pairs_.drop_postings(pair);
  forgotten_.clear();
}

void Trainer::merge_at(Position i, Position j, uint32_t pair, uint32_t token) {
  const SymbolPair symbols = pairs_[pair].pair;
  const int64_t count = words_.count(i);
  const Position before = words_.previous(i), after = words_.next(j);
  const auto lose_one = [&](SymbolPair lost) {
    if (is_counted(lost)) lose(lost, count);
  };
  const auto gain_one = [&](SymbolPair gained, Position at) {
    gain(gained, at, is_counted(gained) ? count : 0);
  };
  if (before != WordArray::kNone) lose_one({words_.at(before), symbols.left});
  if (after != WordArray::kNone) lose_one({symbols.right, words_.at(after)});
  words_.merge(i, j, token);
  if (before != WordArray::kNone) gain_one({words_.at(before), token}, before);
  if (after != WordArray::kNone) gain_one({token, words_.at(after)}, i);
  if (is_counted(symbols)) pairs_[pair].count -= count;
  used_up(symbols, token, count);
}

// So many occurrences of a pair have become a token.
void Trainer::used_up(SymbolPair pair, uint32_t token, int64_t count) {
  tokens_left_ -= count;
  queue_->count_symbol(pair.left, -count);
  queue_->count_symbol(pair.right, -count);
  queue_->count_symbol(token, count);
}

// The merge that two symbols side by side became before, if any.
Trainer::Made Trainer::made_of(Position left, Position right) const {
  if (left == WordArray::kNone || right == WordArray::kNone) return {};
  const auto found = made_.find(pairs_.find({words_.at(left), words_.at(right)}));
  return found == made_.end() ? Made{} : found->second;
}

// After a merge at i: pairs that are merges already are merged at once, as encoding would do.
void Trainer::merge_known_around(Position i) {
  for (;;) {
    const Position before = words_.previous(i), after = words_.next(i);
    const Made left = made_of(before, i), right = made_of(i, after);
    if (left.rank == kNever && right.rank == kNever) return;
    if (left.rank <= right.rank) {
      merge_at(before, i, left.pair, left.token);
      i = before;
    } else {
      merge_at(i, after, right.pair, right.token);
    }
  }
}

void Trainer::lose(SymbolPair pair, int64_t count) {
  const uint32_t found = pairs_.find(pair);
  if ((pairs_[found].count -= count) == 0) pairs_.drop_postings(found);
}

void Trainer::gain(SymbolPair pair, Position i, int64_t count) {
  const uint32_t found = pairs_.find_or_add(pair);
  pairs_[found].count += count;
  gains_.emplace_back(found, i);
}

// Files the occurrences that the merge brought under their pairs.
void Trainer::file_gains() {
  std::sort(gains_.begin(), gains_.end());
  gains_.erase(std::unique(gains_.begin(), gains_.end()),
               gains_.end());  // a position may come twice
  for (size_t begin = 0, end; begin < gains_.size(); begin = end) {
    const uint32_t pair = gains_[begin].first;
    for (end = begin; end < gains_.size() && gains_[end].first == pair;) ++end;
    Postings postings = pairs_.arena().take(static_cast<uint32_t>(end - begin));
    for (size_t i = begin; i < end; ++i) postings.begin()[i - begin] = gains_[i].second;
    pairs_.add_postings(pair, postings);
    gained_.push_back(pair);
  }
  gains_.clear();
}

// Queues the pairs that the merge brought.
void Trainer::queue_gains() {
  for (const uint32_t pair : gained_) queue_->gained(pair);
  queue_->update();
  gained_.clear();
}

}  // namespace bpe
