// The core without Python: each input is cut, counted, trained on, encoded and decoded, also with
// superwords, and compared with the textbook, written out plainly here. `make core-test` runs it on
// inputs of its own, `make core-fuzz` under libFuzzer.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "count/counter.h"
#include "encode/encoder.h"
#include "table/flat_table.h"
#include "text/ascii.h"
#include "text/scanner.h"
#include "train/trainer.h"

namespace {

using bpe::Bytes;
using bpe::bytes_of;
using Pair = std::pair<std::string, std::string>;

constexpr size_t kVocabulary = 256 + 40;
constexpr size_t kSuperwords = 10;
constexpr size_t kMostTrained = 2000;  // bytes: the textbook looks at all words for each merge

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

std::string string_of(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

// A column of one text. It refers to the text and to itself.
struct OneText {
  explicit OneText(const std::string& text)
      : data(bytes_of(text)), offsets{0, static_cast<int64_t>(text.size())} {}
  OneText(const OneText&) = delete;
  OneText& operator=(const OneText&) = delete;

  bpe::TextColumn column() const {
    const std::span<const int64_t> all(offsets);
    return {data, {reinterpret_cast<const uint8_t*>(all.data()), all.size_bytes()}, 8, 0, 1};
  }

  Bytes data;
  std::vector<int64_t> offsets;
};

template <class Pattern, class Block>
std::vector<std::string> cut(const std::string& text) {
  std::vector<std::string> words;
  const Bytes bytes = bytes_of(text);
  bpe::Scanner<Pattern, Block> scanner(bytes.data(), bytes.data() + bytes.size());
  for (const uint8_t *begin, *end; scanner.next(begin, end);) {
    require(begin < end, "a pre-token is empty");
    words.emplace_back(begin, end);
  }
  return words;
}

// The pre-tokens by the definition of the pattern alone: no block, no window.
template <class Pattern>
std::vector<std::string> cut_by_match(const std::string& text) {
  std::vector<std::string> words;
  const uint8_t *p = bytes_of(text).data(), *const end = p + text.size();
  for (p = Pattern::begin(p, end); p != end; p = Pattern::begin(p, end)) {
    const uint8_t* const next = Pattern::match(p, end);
    words.emplace_back(p, next);
    p = next;
  }
  return words;
}

std::map<std::string, int64_t> counts_of(const bpe::SortedCountsList& shards) {
  std::map<std::string, int64_t> counts;
  for (const auto& run : shards) {
    const auto* offsets = reinterpret_cast<const int64_t*>(run->offsets().data());
    const auto* number = reinterpret_cast<const int64_t*>(run->counts().data());
    std::string last;
    for (size_t row = 0; row < run->size(); ++row) {
      const std::string key(run->data().data() + offsets[row],
                            run->data().data() + offsets[row + 1]);
      require(row == 0 || bytes_of(last).size() == 0 ||
                  std::ranges::lexicographical_compare(bytes_of(last), bytes_of(key)),
              "the words of a shard are not sorted");
      require(counts.emplace(key, number[row]).second, "a word is counted in two places");
      last = key;
    }
  }
  return counts;
}

bpe::Pretokenizer pretokenizer_of(const std::string& name) {
  return {{bpe::pattern_from_name(name)}};
}

std::map<std::string, int64_t> counted(const std::string& text, const std::string& name) {
  bpe::Counter counter(pretokenizer_of(name), {}, false);
  counter.add(OneText(text).column(), {});
  return counts_of(counter.drain(3));
}

using Word = std::vector<std::string>;

Word merged(const Word& word, const Pair& pair) {
  Word out;
  for (size_t i = 0; i < word.size(); ++i) {
    if (i + 1 < word.size() && word[i] == pair.first && word[i + 1] == pair.second) {
      out.push_back(pair.first + pair.second);
      ++i;
    } else {
      out.push_back(word[i]);
    }
  }
  return out;
}

Word letters_of(const std::string& text) {
  Word word;
  for (const char letter : text) word.emplace_back(1, letter);
  return word;
}

// The tokens of a sequence by the definition: again and again the earliest merge, left to right.
Word textbook_tokens(Word word, const std::vector<Pair>& merges) {
  for (;;) {
    size_t earliest = merges.size();
    for (size_t i = 0; i + 1 < word.size(); ++i) {
      const auto found = std::ranges::find(merges, Pair{word[i], word[i + 1]});
      earliest = std::min(earliest, static_cast<size_t>(found - merges.begin()));
    }
    if (earliest == merges.size()) return word;
    word = merged(word, merges[earliest]);
  }
}

// Merges by the textbook (Sennrich et al. 2016, algorithm 1): every pair is counted anew for each.
// A merge that makes an existing string may bring an older pair back, which is then merged again.
std::vector<Pair> textbook_merges(std::vector<std::pair<Word, int64_t>> words, size_t most,
                                  bpe::PairCounts pair_counts) {
  const auto less = [](const Pair& a, const Pair& b) {
    const auto first = bytes_of(a.first), other = bytes_of(b.first);
    if (a.first != b.first) return std::ranges::lexicographical_compare(first, other);
    return std::ranges::lexicographical_compare(bytes_of(a.second), bytes_of(b.second));
  };
  std::set<std::string> tokens;
  for (const auto& [word, count] : words) tokens.insert(word.begin(), word.end());
  std::vector<Pair> merges;
  while (merges.size() < most) {
    std::map<Pair, int64_t, decltype(less)> pairs(less);
    for (const auto& [word, count] : words) {
      Pair previous;
      for (size_t i = 0; i + 1 < word.size(); ++i) {
        const Pair pair{word[i], word[i + 1]};
        const bool overlaps = pair_counts == bpe::PairCounts::disjoint && pair == previous;
        if (!overlaps) pairs[pair] += count;
        previous = overlaps ? Pair{} : pair;
      }
    }
    const auto best = std::ranges::max_element(
        pairs, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best == pairs.end()) break;
    merges.push_back(best->first);
    const bool is_new = tokens.insert(merges.back().first + merges.back().second).second;
    for (auto& [word, count] : words)
      word = is_new ? merged(word, merges.back()) : textbook_tokens(word, merges);
  }
  return merges;
}

std::vector<std::pair<Word, int64_t>> words_of(const std::map<std::string, int64_t>& counts) {
  std::vector<std::pair<Word, int64_t>> words;
  for (const auto& [text, count] : counts) words.emplace_back(letters_of(text), count);
  return words;
}

// The tokens of an encoder in the making; merges add to them.
struct Tokens {
  Tokens() {
    for (int byte = 0; byte < 256; ++byte) all.emplace_back(1, static_cast<char>(byte));
  }

  uint32_t id_of(const std::string& token) const {
    return static_cast<uint32_t>(std::ranges::find(all, token) - all.begin());
  }

  // (left, right, result) of each merge; results that are new become tokens.
  std::vector<uint32_t> add(const std::vector<Pair>& merges) {
    std::vector<uint32_t> triples;
    for (const auto& [left, right] : merges) {
      if (id_of(left + right) == all.size()) all.push_back(left + right);
      triples.insert(triples.end(), {id_of(left), id_of(right), id_of(left + right)});
    }
    return triples;
  }

  bpe::Vocabulary vocabulary() const {
    std::string data;
    std::vector<int64_t> offsets{0};
    for (const std::string& token : all) {
      data += token;
      offsets.push_back(static_cast<int64_t>(data.size()));
    }
    return bpe::Vocabulary(bytes_of(data), offsets);
  }

  std::vector<std::string> all;
};

std::vector<Pair> trained_merges(const std::vector<std::pair<Word, int64_t>>& words,
                                 const Tokens& alphabet, size_t most, bpe::PairCounts pair_counts) {
  bpe::TrainerOptions options;
  options.pair_counts = pair_counts;
  options.max_tokens = alphabet.all.size() + most;
  bpe::Trainer trainer(alphabet.all, options);
  for (const auto& [word, count] : words)
    trainer.add_word(word.size(), count,
                     [&, &word = word](size_t i) { return alphabet.id_of(word[i]); });
  trainer.step(most);
  std::vector<Pair> merges;
  for (const bpe::Merge& merge : trainer.merges())
    merges.emplace_back(trainer.tokens()[merge.pair.left], trainer.tokens()[merge.pair.right]);
  return merges;
}

void check_ids(const bpe::Encoder& encoder, const std::string& text,
               const std::vector<uint32_t>& expected, const std::string& kept) {
  for (int pass = 0; pass < 2; ++pass) {  // the second time, words come from the cache
    bpe::EncodedRows rows = encoder.encode(OneText(text).column(), {}, {}, false);
    const size_t size = rows.ids.size();
    const bpe::Buffer ids = rows.ids.finish();
    const std::span encoded(reinterpret_cast<const uint32_t*>(ids.data()), size);
    require(std::ranges::equal(encoded, expected), "ids differ from the textbook's");
    const std::vector<int64_t> ends{0, static_cast<int64_t>(size)};
    require(string_of(encoder.decode(encoded, ends, {}).data) == kept, "decoding differs");
  }
}

// The runs of pre-tokens that are one token each, of those that `is_part` allows: where each begins
// and ends.
template <class IsPart>
std::vector<std::pair<size_t, size_t>> textbook_runs(const std::vector<Word>& words,
                                                     IsPart&& is_part) {
  std::vector<std::pair<size_t, size_t>> runs;
  for (size_t begin = 0, end; begin < words.size(); begin = end + 1) {
    for (end = begin; end < words.size(); ++end)
      if (words[end].size() != 1 || !is_part(words[end][0])) break;
    if (begin < end) runs.emplace_back(begin, end);
  }
  return runs;
}

// Marks of tokens, the superwords that are learnt from runs of them, and the ids that these give.
// Every third token takes part in no run.
void check_superwords(const std::string& text, const std::string& name,
                      const std::vector<Word>& words, Tokens tokens,
                      const std::vector<uint32_t>& merges, const std::string& kept) {
  const auto is_part = [&](const std::string& token) { return tokens.id_of(token) % 3 != 0; };
  std::vector<uint8_t> marks;
  for (size_t id = 0; id < tokens.all.size(); ++id) marks.push_back(id % 3 != 0);
  const bpe::Encoder marking(tokens.vocabulary(), merges, {}, pretokenizer_of(name), false,
                             bpe::Model{}, {}, bpe::Marks(marks, marks.size()));
  std::vector<uint32_t> marked;
  for (const Word& word : words)
    for (const std::string& token : word) {
      const uint32_t id = tokens.id_of(token);
      marked.push_back(word.size() == 1 && marks[id] ? id | uint32_t{1} << bpe::Marks::kShift : id);
    }
  bpe::EncodedRows rows = marking.encode(OneText(text).column(), {}, {}, false);
  require(std::ranges::equal(rows.ids.wide(), marked), "marked ids differ from the textbook's");
  std::map<Word, int64_t> runs;
  for (const auto& [begin, end] : textbook_runs(words, is_part)) {
    Word run;
    for (size_t i = begin; i < end; ++i) run.push_back(words[i][0]);
    if (run.size() > 1) ++runs[run];
  }
  const std::vector<std::pair<Word, int64_t>> sequences(runs.begin(), runs.end());
  const auto superwords = textbook_merges(sequences, kSuperwords, bpe::PairCounts::disjoint);
  require(trained_merges(sequences, tokens, kSuperwords, bpe::PairCounts::disjoint) == superwords,
          "superwords differ from the textbook's");
  std::set<std::string> parts;
  for (const auto& [left, right] : superwords) parts.insert({left, right});
  const std::vector<uint32_t> triples = tokens.add(superwords);
  const bpe::Encoder of_superwords(tokens.vocabulary(), merges, {}, pretokenizer_of(name), false,
                                   bpe::Model{}, triples);
  std::vector<uint32_t> ids;
  const auto add = [&](const Word& sequence) {
    for (const std::string& token : sequence) ids.push_back(tokens.id_of(token));
  };
  size_t at = 0;
  for (const auto& [begin, end] :
       textbook_runs(words, [&](const std::string& token) { return parts.contains(token); })) {
    for (; at < begin; ++at) add(words[at]);
    Word run;
    for (; at < end; ++at) run.push_back(words[at][0]);
    add(textbook_tokens(run, superwords));
  }
  for (; at < words.size(); ++at) add(words[at]);
  check_ids(of_superwords, text, ids, kept);
}

void check_encoding(const std::string& text, const std::string& name,
                    const std::vector<std::string>& words, const std::vector<Pair>& merges) {
  Tokens tokens;
  const std::vector<uint32_t> triples = tokens.add(merges);
  const bpe::Encoder encoder(tokens.vocabulary(), triples, {}, pretokenizer_of(name), false,
                             bpe::Model{});
  std::vector<Word> encoded;
  std::vector<uint32_t> expected;
  std::string kept;
  for (const std::string& word : words) {
    encoded.push_back(textbook_tokens(letters_of(word), merges));
    for (const std::string& token : encoded.back()) expected.push_back(tokens.id_of(token));
    kept += word;
  }
  check_ids(encoder, text, expected, kept);
  // Encoders are large: a fifth of the texts is enough.
  if (text.size() % 5 == 0) check_superwords(text, name, encoded, tokens, triples, kept);
}

template <class Pattern>
void check_pattern(const std::string& text) {
  const std::string name(Pattern::kName);
  const std::vector<std::string> words = cut_by_match<Pattern>(text);
  require(cut<Pattern, bpe::PortableBlock>(text) == words, "portable blocks cut otherwise");
  require(cut<Pattern, bpe::AsciiBlock>(text) == words, "blocks cut otherwise");
  if (!Pattern::kDropsText)
    require(std::accumulate(words.begin(), words.end(), std::string()) == text, "text is lost");
  std::map<std::string, int64_t> counts;
  for (const std::string& word : words) ++counts[word];
  require(counted(text, name) == counts, "counts differ");
  if (text.size() > kMostTrained) return;
  const std::vector<std::pair<Word, int64_t>> sequences = words_of(counts);
  for (const auto pair_counts : {bpe::PairCounts::overlapping, bpe::PairCounts::disjoint}) {
    const std::vector<Pair> merges = textbook_merges(sequences, kVocabulary - 256, pair_counts);
    require(trained_merges(sequences, Tokens(), kVocabulary - 256, pair_counts) == merges,
            "merges differ from the textbook's");
    if (pair_counts == bpe::PairCounts::overlapping) check_encoding(text, name, words, merges);
  }
}

constexpr size_t kPatterns = std::tuple_size_v<bpe::Patterns>;

void check(const std::string& text, size_t pattern) {
  bpe::with_pattern(static_cast<bpe::NamedPattern>(pattern),
                    [&](auto chosen) { check_pattern<typename decltype(chosen)::type>(text); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0) check({reinterpret_cast<const char*>(data) + 1, size - 1}, data[0] % kPatterns);
  return 0;
}

#ifndef BPE_LIBFUZZER

namespace {

struct Number {
  uint64_t plus_one = 0;
  bool is_free() const { return plus_one == 0; }
};

// A table beside a set: inserted, removed and grown at random. Hashes are few and lie at the end,
// so that runs of entries are long and come around.
void check_table(std::mt19937& random) {
  const auto hash_of = [](const Number& number) { return ~uint64_t{0} - number.plus_one % 7; };
  const size_t most = 1024;
  size_t capacity = 16;
  bpe::FlatTable<Number> table(capacity);
  std::set<uint64_t> numbers;
  for (int step = 0; step < 4000; ++step) {
    const Number number{1 + random() % 1000};
    const size_t slot = table.find(
        hash_of(number), [&](const Number& other) { return other.plus_one == number.plus_one; });
    require(table[slot].is_free() != numbers.contains(number.plus_one), "a table finds otherwise");
    if (!table[slot].is_free()) {
      if (random() % 2 == 0) continue;
      table.remove(slot, hash_of);
      numbers.erase(number.plus_one);
    } else if (numbers.size() + 1 < capacity) {
      table.insert(slot, number);
      numbers.insert(number.plus_one);
    } else if (capacity < most) {
      capacity *= 2;
      table.resize(capacity, hash_of);
    }
    require(table.size() == numbers.size() && table.capacity() == capacity, "a table's size");
  }
}

}  // namespace

// Texts of pieces that patterns tell apart, of many sizes; the same in every run.
int main(int argc, char** argv) {
  const unsigned texts = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 300;
  const std::vector<std::string> pieces = {" ",
                                           "  ",
                                           "\n",
                                           "\r\n",
                                           "\t",
                                           "a",
                                           "the",
                                           " the",
                                           "ing",
                                           "Word",
                                           "HTTP",
                                           "'s",
                                           "'LL",
                                           "'",
                                           "12",
                                           "3456",
                                           "!",
                                           "!?...",
                                           "/",
                                           "-",
                                           "\xC3\xA9",
                                           "\xC5\xBF",
                                           "\xE6\xBC\xA2\xE5\xAD\x97",
                                           "\xCC\x81",
                                           "\xFF",
                                           "\xE2",
                                           "\xC2\xA0",
                                           "\xF0\x9F\x99\x82",
                                           "aaaa",
                                           "ab",
                                           "\xD0\xBF\xD1\x80"};
  std::mt19937 random(20160715);
  for (int tables = 0; tables < 20; ++tables) check_table(random);
  for (unsigned text = 0; text < texts; ++text) {
    std::string made;
    const size_t size = text % 10 == 9 ? 5 * kMostTrained : random() % 400;
    // The first are of few pieces, so that the same words and ties come again and again.
    const size_t kinds = 2 + random() % (text % 3 == 0 ? 4 : pieces.size() - 1);
    while (made.size() < size) made += pieces[random() % kinds];
    for (size_t pattern = 0; pattern < kPatterns; ++pattern) check(made, pattern);
  }
  std::printf(
      "%u texts: cut, counted, trained on and encoded as by the textbook, with superwords\n",
      texts);
  return 0;
}

#endif
