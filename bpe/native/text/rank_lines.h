// The lines of a .tiktoken file: the bytes of a token in base64 (RFC 4648, section 4) and its rank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "table/buffer.h"

namespace bpe {

namespace ranks {

inline constexpr uint8_t kNoDigit = 0xFF;
inline constexpr std::array<uint8_t, 256> kDigits = [] {
  std::array<uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < kAlphabet.size(); ++i)
    digits[static_cast<uint8_t>(kAlphabet[i])] = static_cast<uint8_t>(i);
  return digits;
}();

// Appends what the text means; false where it is no base64 with its padding, or ends in bits
// that are not zero.
inline bool append_base64(std::string_view text, std::vector<uint8_t>& out) {
  if (text.empty() || text.size() % 4 != 0) return false;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  uint32_t bits = 0;
  int size = 0;  // of those that are in no byte yet
  for (const char character : text.substr(0, text.size() - padding)) {
    const uint8_t digit = kDigits[static_cast<uint8_t>(character)];
    if (digit == kNoDigit) return false;
    bits = bits << 6 | digit;
    size += 6;
    if (size < 8) continue;
    size -= 8;
    out.push_back(static_cast<uint8_t>(bits >> size));
  }
  return (bits & ((1u << size) - 1)) == 0;
}

}  // namespace ranks

// The tokens of a file whose ranks count from 0, one space before each and one line end after it.
// Nothing where anything else is in it: whoever reads it then can say what is wrong, if it is.
inline std::optional<ByteStrings> tokens_in_rank_order(Bytes data) {
  std::string_view file = chars_of(data);
  ByteStrings tokens;
  tokens.data.reserve(file.size() / 2);
  while (!file.empty()) {
    const size_t end = file.find('\n'), space = file.find(' ');
    if (end == std::string_view::npos || space >= end) return std::nullopt;
    if (file.substr(space + 1, end - space - 1) != std::to_string(tokens.size()))
      return std::nullopt;
    if (!ranks::append_base64(file.substr(0, space), tokens.data)) return std::nullopt;
    tokens.end();
    file.remove_prefix(end + 1);
  }
  return tokens;
}

}  // namespace bpe
