// Pre-tokenizers as Python gives them.
#pragma once

#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "text/pretokenizers.h"

namespace bpe {

// How texts are cut; empty for not at all. What is never split is a pair of tables, as NeverSplit
// has them; a name or a table cuts the pieces of the one before.
using Table = std::shared_ptr<PatternTable>;
using PretokenizerArgument = std::vector<std::variant<std::string, Table, std::pair<Table, Table>>>;

// Throws std::invalid_argument, which lists the names, on others.
inline Pretokenizer pretokenizer_of(const PretokenizerArgument& given) {
  const auto checked = [](const Table& table) {
    if (!table) throw std::invalid_argument("None is no pattern");
    return std::shared_ptr<const PatternTable>(table);
  };
  std::vector<NeverSplit::Pattern> never_split;
  Pretokenizer made;
  for (const auto& pattern : given) {
    if (const auto* tables = std::get_if<std::pair<Table, Table>>(&pattern))
      never_split.push_back({checked(tables->first), checked(tables->second)});
    else if (const auto* name = std::get_if<std::string>(&pattern))
      made.patterns.push_back(pattern_from_name(*name));
    else
      made.patterns.push_back(checked(std::get<Table>(pattern)));
  }
  made.never_split = NeverSplit(std::move(never_split));
  return made;
}

}  // namespace bpe
