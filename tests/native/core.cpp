// The core without Python: what only C++ can reach. The cuts of each text, with blocks of this
// machine and with portable ones, are compared with those of the pattern alone, and tables of
// numbers with sets. What the core counts, learns and encodes is compared in
// tests/bpe/fuzz_targets.py. `make core-test` runs it on inputs of its own, `make core-fuzz` under
// libFuzzer.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "table/flat_table.h"
#include "text/ascii.h"
#include "text/scanner.h"

namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

const uint8_t* bytes_of(const std::string& text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

template <class Pattern, class Block>
std::vector<std::string> cut(const std::string& text) {
  std::vector<std::string> words;
  bpe::Scanner<Pattern, Block> scanner(bytes_of(text), bytes_of(text) + text.size());
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
  const uint8_t *p = bytes_of(text), *const end = p + text.size();
  for (p = Pattern::begin(p, end); p != end; p = Pattern::begin(p, end)) {
    const uint8_t* const next = Pattern::match(p, end);
    words.emplace_back(p, next);
    p = next;
  }
  return words;
}

template <class Pattern>
void check_pattern(const std::string& text) {
  const std::vector<std::string> words = cut_by_match<Pattern>(text);
  require(cut<Pattern, bpe::PortableBlock>(text) == words, "portable blocks cut otherwise");
  require(cut<Pattern, bpe::AsciiBlock>(text) == words, "blocks cut otherwise");
  if (!Pattern::kDropsText)
    require(std::accumulate(words.begin(), words.end(), std::string()) == text, "text is lost");
}

// The sets that bpe::JsonReader asks of a block, byte by byte.
template <class Block>
void check_block(const std::string& text) {
  const Block block(bytes_of(text));
  bpe::Positions beyond = 0, quotes = 0, escapes = 0, control = 0;
  for (size_t i = 0; i < Block::kSize; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    beyond |= static_cast<bpe::Positions>(byte >= 0x80) << i;
    quotes |= static_cast<bpe::Positions>(byte == '"') << i;
    escapes |= static_cast<bpe::Positions>(byte == '\\') << i;
    control |= static_cast<bpe::Positions>(byte < 0x20) << i;
  }
  require(block.beyond_ascii() == beyond && block.equal('"') == quotes &&
              block.equal('\\') == escapes && block.between(0, 0x1F, 0) == control,
          "a block finds other bytes");
}

constexpr size_t kPatterns = std::tuple_size_v<bpe::Patterns>;

void check(const std::string& text, size_t pattern) {
  bpe::with_pattern(static_cast<bpe::NamedPattern>(pattern),
                    [&](auto chosen) { check_pattern<typename decltype(chosen)::type>(text); });
  if (text.size() < bpe::AsciiBlock::kSize) return;
  check_block<bpe::PortableBlock>(text);
  check_block<bpe::AsciiBlock>(text);
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

// A table compared with a set: inserted, removed and grown at random. Hashes are few and at the
// end, so that runs of entries are long and come around.
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

// Texts of slices of one that patterns cut in every way, of many sizes; the same in every run.
int main(int argc, char** argv) {
  const unsigned texts = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 300;
  const std::string sample =
      "the  Word\n\r\n\t ing\xCC\x81 don't 'LL 12 3456!?...///\"\\\x1F\x7F-_HTTP\xC3\xA9"
      "'\xC5\xBF\xE6\xBC\xA2\xE5\xAD\x97\xFF\xC2\xA0\xF0\x9F\x99\x82 aaaa ab\xD0\xBF\xD1\x80";
  std::mt19937 random(20160715);
  for (int tables = 0; tables < 20; ++tables) check_table(random);
  for (unsigned text = 0; text < texts; ++text) {
    std::string made;
    const size_t size = text % 10 == 9 ? 10000 : random() % 400;
    // The first are of few bytes, so that the same words come again and again.
    const size_t kinds = text % 3 == 0 ? 2 + random() % 8 : sample.size();
    const size_t first = random() % (sample.size() - kinds + 1);
    while (made.size() < size) made += sample.substr(first + random() % kinds, 1 + random() % 4);
    for (size_t pattern = 0; pattern < kPatterns; ++pattern) check(made, pattern);
  }
  std::printf("%u texts: cut alike by every kind of block; tables beside sets\n", texts);
  return 0;
}

#endif
