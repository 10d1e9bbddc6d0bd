// The strings of symbols: alphabet first, then what merges make.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "table/bytes.h"

namespace bpe {

class TokenStrings {
 public:
  // `alphabet`: the strings of symbols 0, 1, …, all different.
  explicit TokenStrings(const std::vector<std::string>& alphabet) {
    for (const std::string& symbol : alphabet)
      if (!find_or_add(symbol).second)
        throw std::invalid_argument("the alphabet has a symbol twice");
  }

  size_t size() const { return tokens_.size(); }
  const std::string& operator[](uint32_t id) const { return tokens_[id]; }
  const std::vector<std::string>& all() const { return tokens_; }

  // The id of a string, and whether it is new.
  std::pair<uint32_t, bool> find_or_add(const std::string& token) {
    const auto [found, added] = ids_.try_emplace(token, static_cast<uint32_t>(tokens_.size()));
    if (added) {
      prefixes_.push_back(prefix_of(token));
      tokens_.push_back(token);
    }
    return {found->second, added};
  }

  // Less than, equal to or greater than 0, as the bytes of a and b compare.
  int compare(uint32_t a, uint32_t b) const {
    if (a == b) return 0;
    if (prefixes_[a] != prefixes_[b]) return prefixes_[a] < prefixes_[b] ? -1 : 1;
    return tokens_[a].compare(tokens_[b]);
  }

  // The same in GPT-2's printable alphabet.
  int compare_spellings(uint32_t a, uint32_t b) const {
    const auto spelled_before = [](char x, char y) {
      return spelling_rank(static_cast<uint8_t>(x)) < spelling_rank(static_cast<uint8_t>(y));
    };
    const std::string &x = tokens_[a], &y = tokens_[b];
    const auto [i, j] = std::mismatch(x.begin(), x.end(), y.begin(), y.end());
    if (j == y.end()) return i == x.end() ? 0 : 1;
    return i == x.end() || spelled_before(*i, *j) ? -1 : 1;
  }

 private:
  // The place of a byte in the order of GPT-2's characters: what is printable in Latin-1 represents
  // itself, and the other bytes are characters from U+0100 on.
  static uint32_t spelling_rank(uint8_t byte) {
    const bool printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    return printable ? byte : 0x100u + byte;
  }

  // The first 8 bytes, the first one highest, so that integers compare as strings do.
  static uint64_t prefix_of(std::string_view token) {
    uint8_t bytes[8] = {};
    std::ranges::copy(token.substr(0, 8), bytes);
    return __builtin_bswap64(load_le64(bytes));
  }

  std::vector<std::string> tokens_;
  std::vector<uint64_t> prefixes_;  // to compare fast
  std::unordered_map<std::string, uint32_t> ids_;
};

}  // namespace bpe
