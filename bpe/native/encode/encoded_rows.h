// What encoding a column of texts returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "table/bytes.h"
#include "table/id_array.h"

namespace bpe {

// What no token represents, and no unknown token either: it ends the row that holds it.
struct Unencodable : std::invalid_argument {
  std::string text;  // a character, a malformed byte or a whole pre-token

  explicit Unencodable(Bytes found)
      : std::invalid_argument("no token is " + std::string(chars_of(found))),
        text(chars_of(found)) {}
};

// How pre-tokens became ids: how many there were, and those that the cache did not know; with
// dropout all.
struct CacheUse {
  size_t asked = 0;
  size_t misses = 0;
};

struct EncodedRows {
  IdArray ids;
  std::vector<int64_t> offsets{0};  // row i: ids [offsets[i], offsets[i + 1])
  std::vector<std::pair<int64_t, Unencodable>> unencodable{};  // rows without ids, ascending
  CacheUse cache_use{};
};

}  // namespace bpe
