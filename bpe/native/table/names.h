// Enumerations that have names: listed once, checked once.
#pragma once

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace bpe {

// The value whose number is the place of `name` among `names`. Throws std::invalid_argument,
// listing the names, where it has none; `what` says what is named.
template <class Value, size_t N>
Value from_name(std::string_view name, const std::array<std::string_view, N>& names,
                std::string_view what) {
  std::string valid;
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == name) return static_cast<Value>(i);
    valid.append(i == 0 ? "" : ", ").append(names[i]);
  }
  throw std::invalid_argument("unknown " + std::string(what) + " '" + std::string(name) +
                              "'; valid: " + valid);
}

}  // namespace bpe
