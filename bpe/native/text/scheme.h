// The names of the pre-tokenizers that the core knows.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <type_traits>

#include "table/names.h"

namespace bpe {

enum class Scheme : uint8_t { gpt2, cl100k, o200k, llama3, qwen2, words, spaces, bert, none };

inline constexpr std::array<std::string_view, 9> kSchemeNames = {
    "gpt2", "cl100k", "o200k", "llama3", "qwen2", "words", "spaces", "bert", "none"};

inline Scheme scheme_from_name(std::string_view name) {
  return from_name<Scheme>(name, kSchemeNames, "pre-tokenizer");
}

// Calls f with the scheme as a constant of type std::integral_constant<Scheme, S>.
template <class F>
decltype(auto) with_scheme(Scheme scheme, F&& f) {
  switch (scheme) {
    case Scheme::gpt2:
      return f(std::integral_constant<Scheme, Scheme::gpt2>{});
    case Scheme::cl100k:
      return f(std::integral_constant<Scheme, Scheme::cl100k>{});
    case Scheme::o200k:
      return f(std::integral_constant<Scheme, Scheme::o200k>{});
    case Scheme::llama3:
      return f(std::integral_constant<Scheme, Scheme::llama3>{});
    case Scheme::qwen2:
      return f(std::integral_constant<Scheme, Scheme::qwen2>{});
    case Scheme::words:
      return f(std::integral_constant<Scheme, Scheme::words>{});
    case Scheme::spaces:
      return f(std::integral_constant<Scheme, Scheme::spaces>{});
    case Scheme::bert:
      return f(std::integral_constant<Scheme, Scheme::bert>{});
    case Scheme::none:
      return f(std::integral_constant<Scheme, Scheme::none>{});
  }
  throw std::invalid_argument("not a pre-tokenizer");
}

}  // namespace bpe
