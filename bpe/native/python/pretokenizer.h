// Pre-tokenizers as Python gives them.
#pragma once

#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "python/bindings.h"
#include "text/pretokenizers.h"

namespace bpe {

// A name, "" for none, or a table.
using PretokenizerArgument = std::variant<std::string, std::shared_ptr<PatternTable>>;

// Throws std::invalid_argument, which lists the names, on others.
inline std::optional<Pretokenizer> pretokenizer_of(const PretokenizerArgument& given) {
  if (const auto* table = std::get_if<std::shared_ptr<PatternTable>>(&given)) {
    if (!*table) throw std::invalid_argument("None is no pre-tokenizer");
    return Pretokenizer(std::shared_ptr<const PatternTable>(*table));
  }
  const std::string& name = std::get<std::string>(given);
  if (name.empty()) return std::nullopt;
  return pattern_from_name(name);
}

}  // namespace bpe
