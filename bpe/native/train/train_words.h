// Words of an Arrow column on their way into the trainer: checked, cut into symbols.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "text/text_column.h"
#include "text/utf8.h"
#include "train/trainer.h"

namespace bpe {

// Calls visit(character, whether it is the first) for each character of a word; false where the
// word is not UTF-8.
template <typename Visit>
bool each_character(std::span<const uint8_t> word, Visit&& visit) {
  const uint8_t* const end = word.data() + word.size();
  for (const uint8_t* p = word.data(); p != end;) {
    const Decoded step = decode_utf8(p, end);
    if (step.code_point == kMalformed) return false;
    visit(step, p == word.data());
    p += step.size;
  }
  return true;
}

// How often each character occurs, as the first of a word and behind others: code points,
// ascending, and their counts.
struct CharacterCounts {
  std::vector<uint32_t> code_points;
  std::vector<uint64_t> first, rest;
  std::optional<size_t> malformed;  // the first word that is not UTF-8; then nothing is counted
};

// Throws std::overflow_error past 2^62 characters.
inline CharacterCounts count_characters(const TextColumn& words, std::span<const int64_t> counts) {
  std::vector<uint64_t> first(kCodePoints), rest(kCodePoints);
  unsigned __int128 total = 0;
  CharacterCounts found;
  for (size_t word = 0; word < words.rows(); ++word) {
    const bool well_formed =
        each_character(words[word], [&](const Decoded& character, bool is_first) {
          total += static_cast<uint64_t>(counts[word]);
          (is_first ? first : rest)[character.code_point] += static_cast<uint64_t>(counts[word]);
        });
    if (!well_formed) {
      found.malformed = word;
      return found;
    }
    if (total > uint64_t{1} << 62)
      throw std::overflow_error(
          "the corpus has more than 2^62 symbols: divide the counts by a common factor");
  }
  for (uint32_t code_point = 0; code_point < kCodePoints; ++code_point) {
    if (first[code_point] == 0 && rest[code_point] == 0) continue;
    found.code_points.push_back(code_point);
    found.first.push_back(first[code_point]);
    found.rest.push_back(rest[code_point]);
  }
  return found;
}

// What a character without a symbol becomes when its word is encoded.
enum class Uncovered : uint8_t {
  refused,
  bytes,    // a token for each of its bytes
  unknown,  // the unknown token
  fused,    // one unknown token with its neighbours
};
inline constexpr std::array<std::string_view, 4> kUncovered{"", "bytes", "unknown", "fused"};

// Which symbol a character is, as the first of a word and behind another one.
class CharacterSymbols {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;

  // `first`: (code point, symbol, code point, symbol, …); `rest` likewise.
  CharacterSymbols(std::span<const uint32_t> first, std::span<const uint32_t> rest, uint32_t end,
                   size_t symbols)
      : first_(kCodePoints, kNone), rest_(kCodePoints, kNone), end_(end) {
    fill(first, first_, symbols);
    fill(rest, rest_, symbols);
    if (end != kNone && end >= symbols) throw std::invalid_argument("no such symbol");
  }

  // Calls on_part(symbols) for each part of a word between characters without a symbol, with which
  // nothing merges; returns how many tokens these become.
  template <typename OnPart>
  size_t each_part(const TextColumn& words, size_t word, Uncovered uncovered,
                   std::vector<uint32_t>& symbols, OnPart&& on_part) const {
    symbols.clear();
    size_t tokens = 0;
    bool behind_unknown = false;
    const auto end_part = [&] {
      if (!symbols.empty()) on_part(symbols);
      symbols.clear();
    };
    const bool well_formed =
        each_character(words[word], [&](const Decoded& character, bool is_first) {
          const uint32_t symbol = (is_first ? first_ : rest_)[character.code_point];
          if (symbol != kNone) {
            symbols.push_back(symbol);
            behind_unknown = false;
            return;
          }
          if (uncovered == Uncovered::refused)
            throw std::invalid_argument("word " + std::to_string(word) +
                                        " has a character without a symbol");
          end_part();
          if (uncovered == Uncovered::bytes)
            tokens += character.size;
          else if (uncovered == Uncovered::unknown || !behind_unknown)
            ++tokens;
          behind_unknown = true;
        });
    if (!well_formed) throw std::invalid_argument("word " + std::to_string(word) + " is not UTF-8");
    if (end_ != kNone) symbols.push_back(end_);
    end_part();
    return tokens;
  }

 private:
  static void fill(std::span<const uint32_t> pairs, std::vector<uint32_t>& symbol_of,
                   size_t symbols) {
    if (pairs.size() % 2 != 0) throw std::invalid_argument("characters and symbols are no pairs");
    for (size_t i = 0; i < pairs.size(); i += 2) {
      if (pairs[i] >= kCodePoints || pairs[i + 1] >= symbols)
        throw std::invalid_argument("no such character or symbol");
      symbol_of[pairs[i]] = pairs[i + 1];
    }
  }

  std::vector<uint32_t> first_;
  std::vector<uint32_t> rest_;
  uint32_t end_;
};

}  // namespace bpe
