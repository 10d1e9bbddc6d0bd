// The merges of a file, checked.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "encode/vocabulary.h"
#include "table/merge_table.h"

namespace bpe {

// The table of merges (left, right, result), the first merge first. Throws std::invalid_argument,
// with `kind` and the number of the merge, unless each makes the bytes of its parts and is listed
// once, and no special token takes part.
inline MergeTable merge_table(const Vocabulary& vocabulary, const std::vector<bool>& is_special,
                              std::span<const uint32_t> merges, const std::string& kind) {
  if (merges.size() % 3 != 0)
    throw std::invalid_argument("merges are not triples of left, right, result");
  MergeTable table(merges.size() / 3);
  for (size_t i = 0; i < merges.size(); i += 3) {
    const uint32_t left = merges[i], right = merges[i + 1], result = merges[i + 2];
    const auto fail = [&](const std::string& what) {
      throw std::invalid_argument(kind + " " + std::to_string(i / 3) + " (" + std::to_string(left) +
                                  ", " + std::to_string(right) + " -> " + std::to_string(result) +
                                  "): " + what);
    };
    for (const uint32_t id : {left, right, result}) {
      if (!vocabulary.has(id)) fail("no token has the id " + std::to_string(id));
      if (is_special[id]) fail("id " + std::to_string(id) + " is a special token");
    }
    const auto a = vocabulary[left], b = vocabulary[right], made = vocabulary[result];
    if (made.size() != a.size() + b.size() || !std::ranges::equal(made.first(a.size()), a) ||
        !std::ranges::equal(made.last(b.size()), b))
      fail("the result is not the bytes of left and right");
    if (!table.insert(left, right, static_cast<Rank>(i / 3), result))
      fail("the pair is merged twice");
  }
  return table;
}

}  // namespace bpe
