// The pre-tokenizers that the core knows. To add one, write its pattern (patterns/) and list it
// here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "table/names.h"
#include "text/never_split.h"
#include "text/pattern_table.h"
#include "text/patterns/cl100k.h"
#include "text/patterns/gpt2.h"
#include "text/patterns/o200k.h"
#include "text/patterns/spaces.h"

namespace bpe {

using Patterns = std::tuple<Gpt2, Cl100k, O200k, Llama3, Qwen2, Words, Spaces, Bert, None>;

// The number of a pattern in the list.
enum class NamedPattern : uint8_t {};

// A pattern of the list, or one that somebody gave.
using CutPattern = std::variant<NamedPattern, std::shared_ptr<const PatternTable>>;

// How texts are cut: at what is never split, and what is between by these patterns, each of which
// cuts the pieces of the one before.
struct Pretokenizer {
  std::vector<CutPattern> patterns;
  NeverSplit never_split = {};
};

inline constexpr auto kPretokenizerNames = []<size_t... I>(std::index_sequence<I...>) {
  return std::array{std::tuple_element_t<I, Patterns>::kName...};
}(std::make_index_sequence<std::tuple_size_v<Patterns>>{});

// Throws std::invalid_argument, which lists the names, on others.
inline NamedPattern pattern_from_name(std::string_view name) {
  return from_name<NamedPattern>(name, kPretokenizerNames, "pre-tokenizer");
}

// Calls f with the pattern as std::type_identity<Pattern>.
template <size_t I = 0, class F>
decltype(auto) with_pattern(NamedPattern name, F&& f) {
  if constexpr (I + 1 < std::tuple_size_v<Patterns>)
    if (static_cast<size_t>(name) != I) return with_pattern<I + 1>(name, std::forward<F>(f));
  return f(std::type_identity<std::tuple_element_t<I, Patterns>>{});
}

}  // namespace bpe
