#include "trainer.h"

namespace bpe {

namespace {

// The first 8 bytes, the first one highest, so that integers compare as strings do.
uint64_t prefix_of(std::string_view token) {
  uint64_t prefix = 0;
  for (size_t i = 0; i < 8; ++i)
    prefix = (prefix << 8) | (i < token.size() ? static_cast<uint8_t>(token[i]) : 0);
  return prefix;
}

}  // namespace

Trainer::Trainer(const std::vector<std::string>& alphabet, TrainerOptions options)
    : options_(std::move(options)), tokens_(alphabet) {
  options_.min_frequency = std::max<int64_t>(options_.min_frequency, 1);
  // Hugging Face's queue keeps rare pairs, which matters when they come back.
  keep_from_ = options_.ties == Ties::huggingface ? 0 : options_.min_frequency;
  forbidden_.insert(options_.forbidden.begin(), options_.forbidden.end());
  for (uint32_t id = 0; id < tokens_.size(); ++id) {
    if (!ids_.emplace(tokens_[id], id).second)
      throw std::invalid_argument("the alphabet has a symbol twice");
    prefixes_.push_back(prefix_of(tokens_[id]));
  }
}

bool Trainer::step(size_t merges) {
  if (!counted_) count_pairs();
  Entry best;
  for (; merges > 0; --merges) {
    if (vocabulary_full() || !select(best)) return false;
    merge(best);
  }
  return true;
}

// Two passes over all words: how often each pair occurs and at how many positions, then where.
void Trainer::count_pairs() {
  counted_ = true;
  tokens_left_ = initial_tokens();
  const auto each_pair = [this](auto&& visit) {
    Position i = 1;
    for (size_t word = 0; word < words_.words(); ++word, ++i)
      for (; words_.is_symbol(i); ++i)
        if (words_.is_symbol(i + 1)) visit(SymbolPair{words_.at(i), words_.at(i + 1)}, i, word);
  };
  each_pair([this](SymbolPair pair, Position, size_t word) {
    PairRecord& record = pairs_[pairs_.find_or_add(pair)];
    record.count += words_.word_count(word);
    ++record.postings.size;
  });
  for (uint32_t pair = 0; pair < pairs_.size(); ++pair) {
    Postings& postings = pairs_[pair].postings;
    postings.positions = pairs_.arena().take(postings.size);
    postings.size = 0;
  }
  each_pair([this](SymbolPair pair, Position i, size_t) {
    Postings& postings = pairs_[pairs_.find(pair)].postings;
    postings.positions[postings.size++] = i;
  });
  for (uint32_t pair = 0; pair < pairs_.size(); ++pair) {
    const PairRecord& record = pairs_[pair];
    if (record.count < keep_from_) continue;
    const bool by_place = options_.ties == Ties::first_seen;
    heap_.push_back({record.count, pair, by_place ? record.postings.positions[0] : 0});
  }
  std::make_heap(heap_.begin(), heap_.end(),
                 [this](const Entry& a, const Entry& b) { return before(b, a); });
}

// Whether a is merged before b.
bool Trainer::before(const Entry& a, const Entry& b) const {
  if (a.count != b.count) return a.count > b.count;
  const SymbolPair x = pairs_[a.pair].pair, y = pairs_[b.pair].pair;
  switch (options_.ties) {
    case Ties::id_min:
      return x.key() < y.key();
    case Ties::huggingface:
      return x.key() != y.key() ? x.key() < y.key() : a.detail < b.detail;
    case Ties::first_seen:
      return a.detail < b.detail;
    case Ties::bytes_min:
    case Ties::bytes_max:
      break;
  }
  int order = compare_tokens(x.left, y.left);
  if (order == 0) order = compare_tokens(x.right, y.right);
  return options_.ties == Ties::bytes_min ? order < 0 : order > 0;
}

int Trainer::compare_tokens(uint32_t a, uint32_t b) const {
  if (a == b) return 0;
  if (prefixes_[a] != prefixes_[b]) return prefixes_[a] < prefixes_[b] ? -1 : 1;
  return tokens_[a].compare(tokens_[b]);
}

void Trainer::push(const Entry& entry) {
  heap_.push_back(entry);
  std::push_heap(heap_.begin(), heap_.end(),
                 [this](const Entry& a, const Entry& b) { return before(b, a); });
}

// Takes the pair to merge out of the heap; false when no pair is frequent enough.
bool Trainer::select(Entry& best) {
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(),
                  [this](const Entry& a, const Entry& b) { return before(b, a); });
    best = heap_.back();
    heap_.pop_back();
    if (!refreshed(best)) {
      if (best.count >= keep_from_) push(best);
      continue;
    }
    if (best.count < options_.min_frequency) return false;
    if (forbidden(pairs_[best.pair].pair)) continue;
    return true;
  }
  return false;
}

// Brings an entry up to date; true if it was. What is stale can only have come too early.
bool Trainer::refreshed(Entry& top) {
  const Entry old = top;
  top.count = pairs_[top.pair].count;
  if (options_.ties == Ties::first_seen && top.count > 0) {
    top.detail = first_occurrence(top.pair);
    return top.count == old.count && top.detail == old.detail;
  }
  return top.count == old.count;
}

bool Trainer::occurs(SymbolPair pair, Position i) const {
  if (words_.at(i) != pair.left) return false;
  return words_.at(words_.after(i)) == pair.right;
}

WordArray::Position Trainer::first_occurrence(uint32_t pair) {
  const SymbolPair symbols = pairs_[pair].pair;
  Position first = 0xFFFFFFFFu;
  const auto look = [&](Postings& postings) {
    while (postings.cursor < postings.size && !occurs(symbols, postings.positions[postings.cursor]))
      ++postings.cursor;
    if (postings.cursor < postings.size)
      first = std::min(first, postings.positions[postings.cursor]);
  };
  look(pairs_[pair].postings);
  if (auto* later = pairs_.later_postings(pair))
    for (Postings& postings : *later) look(postings);
  return first;
}

bool Trainer::forbidden(SymbolPair pair) const {
  return !forbidden_.empty() && forbidden_.contains(tokens_[pair.left] + tokens_[pair.right]);
}

uint32_t Trainer::token_for(SymbolPair pair) {
  std::string token = tokens_[pair.left] + tokens_[pair.right];
  const auto [found, added] = ids_.try_emplace(token, static_cast<uint32_t>(tokens_.size()));
  if (added) {
    prefixes_.push_back(prefix_of(token));
    tokens_.push_back(std::move(token));
  }
  repeats_string_ = !added;
  return found->second;
}

void Trainer::merge(const Entry& best) {
  const SymbolPair pair = pairs_[best.pair].pair;
  const uint32_t token = token_for(pair);
  collect_positions(best);
  pairs_[best.pair].merge = static_cast<uint32_t>(merges_.size());
  merges_.push_back({pair, token, best.count, 0});
  constexpr size_t kAhead = 16;  // the loop waits for memory: ask for it early
  for (size_t k = 0; k < positions_.size(); ++k) {
    if (k + kAhead < positions_.size()) words_.prefetch(positions_[k + kAhead]);
    const Position i = positions_[k];
    if (!occurs(pair, i)) continue;
    merge_at(i, words_.after(i), best.pair, token);
    if (repeats_string_ && options_.ties != Ties::huggingface) merge_known_around(i);
  }
  publish_gains();
  merges_.back().tokens_left = tokens_left_;
}

// The positions where the pair may occur, ascending, into positions_.
void Trainer::collect_positions(const Entry& best) {
  const Postings& first = pairs_[best.pair].postings;
  positions_.assign(first.positions, first.positions + first.size);
  const auto* later = pairs_.later_postings(best.pair);
  if (later == nullptr) return;
  for (const Postings& postings : *later)
    positions_.insert(positions_.end(), postings.positions, postings.positions + postings.size);
  std::sort(positions_.begin(), positions_.end());
  positions_.erase(std::unique(positions_.begin(), positions_.end()), positions_.end());
  if (options_.ties != Ties::huggingface) return;
  // Its queue entries know only the words in which their own occurrences came up.
  const Postings& own = best.detail == 0 ? first : (*later)[best.detail - 1];
  std::unordered_set<uint32_t> words;
  for (uint32_t k = 0; k < own.size; ++k) words.insert(words_.word_of_slot(own.positions[k]));
  std::erase_if(positions_, [&](Position i) { return !words.contains(words_.word_of_slot(i)); });
}

void Trainer::merge_at(Position i, Position j, uint32_t pair, uint32_t token) {
  const SymbolPair symbols = pairs_[pair].pair;
  const int64_t count = words_.count(i);
  const Position before = words_.previous(i), behind = words_.next(j);
  if (before != WordArray::kNone) lose({words_.at(before), symbols.left}, count);
  if (behind != WordArray::kNone) lose({symbols.right, words_.at(behind)}, count);
  words_.merge(i, j, token);
  if (before != WordArray::kNone) gain({words_.at(before), token}, before, count);
  if (behind != WordArray::kNone) gain({token, words_.at(behind)}, i, count);
  // Hugging Face's trainer leaves the count of the pair it merges as it was, and meets it again
  // with that count if the pair comes back.
  if (options_.ties != Ties::huggingface) pairs_[pair].count -= count;
  tokens_left_ -= count;
}

// After a merge at i: pairs that are merges already are merged at once, as encoding would do.
void Trainer::merge_known_around(Position i) {
  const auto merge_number = [this](Position left, Position right) {
    if (left == WordArray::kNone || right == WordArray::kNone) return PairRecord::kNever;
    return pairs_[pairs_.find({words_.at(left), words_.at(right)})].merge;
  };
  for (;;) {
    const Position before = words_.previous(i), behind = words_.next(i);
    const uint32_t left = merge_number(before, i), right = merge_number(i, behind);
    const uint32_t lowest = std::min(left, right);
    if (lowest == PairRecord::kNever) return;
    const uint32_t pair = pairs_.find(merges_[lowest].pair);
    if (left <= right) {
      merge_at(before, i, pair, merges_[lowest].token);
      i = before;
    } else {
      merge_at(i, behind, pair, merges_[lowest].token);
    }
  }
}

void Trainer::lose(SymbolPair pair, int64_t count) { pairs_[pairs_.find(pair)].count -= count; }

void Trainer::gain(SymbolPair pair, Position i, int64_t count) {
  const uint32_t found = pairs_.find_or_add(pair);
  PairRecord& record = pairs_[found];
  record.count += count;
  if (record.pending++ == 0) gained_.push_back(found);
  gains_.emplace_back(found, i);
}

// Files the occurrences that the merge brought under their pairs, and queues those pairs.
void Trainer::publish_gains() {
  for (const uint32_t pair : gained_) {
    PairRecord& record = pairs_[pair];
    pairs_.add_postings(pair, {pairs_.arena().take(record.pending), record.pending, 0});
  }
  const auto newest = [this](uint32_t pair) -> Postings& {
    auto* later = pairs_.later_postings(pair);
    return later == nullptr ? pairs_[pair].postings : later->back();
  };
  for (const auto& [pair, i] : gains_) {
    Postings& postings = newest(pair);
    postings.positions[postings.size - pairs_[pair].pending--] = i;
  }
  if (repeats_string_) {  // otherwise gains come in ascending order, each once
    for (const uint32_t pair : gained_) {
      Postings& postings = newest(pair);
      Position* const end = postings.positions + postings.size;
      std::sort(postings.positions, end);
      postings.size =
          static_cast<uint32_t>(std::unique(postings.positions, end) - postings.positions);
    }
  }
  for (const uint32_t pair : gained_) {
    const int64_t count = pairs_[pair].count;
    if (count < std::max<int64_t>(keep_from_, 1)) continue;
    uint32_t detail = 0;
    if (options_.ties == Ties::first_seen) detail = first_occurrence(pair);
    if (options_.ties == Ties::huggingface)
      if (const auto* later = pairs_.later_postings(pair))
        detail = static_cast<uint32_t>(later->size());
    push({count, pair, detail});
  }
  gains_.clear();
  gained_.clear();
}

}  // namespace bpe
