// Pre-tokenizers as Python gives them.
#pragma once

#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "python/bindings.h"
#include "text/pretokenizers.h"

namespace bpe {

// A name, "" for none, or a table; or several of these, each to cut the pieces of the one before.
using PatternArgument = std::variant<std::string, std::shared_ptr<PatternTable>>;
using PretokenizerArgument =
    std::variant<std::string, std::shared_ptr<PatternTable>, std::vector<PatternArgument>>;

// Throws std::invalid_argument, which lists the names, on others.
inline CutPattern pattern_of(const PatternArgument& given) {
  if (const auto* name = std::get_if<std::string>(&given)) return pattern_from_name(*name);
  const auto& table = std::get<std::shared_ptr<PatternTable>>(given);
  if (!table) throw std::invalid_argument("None is no pre-tokenizer");
  return std::shared_ptr<const PatternTable>(table);
}

inline std::optional<Pretokenizer> pretokenizer_of(const PretokenizerArgument& given) {
  if (const auto* name = std::get_if<std::string>(&given); name && name->empty())
    return std::nullopt;
  Pretokenizer patterns;
  if (const auto* several = std::get_if<std::vector<PatternArgument>>(&given)) {
    for (const PatternArgument& pattern : *several) patterns.push_back(pattern_of(pattern));
    if (patterns.empty()) throw std::invalid_argument("a pre-tokenizer needs a pattern");
  } else if (const auto* name = std::get_if<std::string>(&given)) {
    patterns.push_back(pattern_of(*name));
  } else {
    patterns.push_back(pattern_of(std::get<std::shared_ptr<PatternTable>>(given)));
  }
  return patterns;
}

}  // namespace bpe
