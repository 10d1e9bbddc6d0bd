// Which merges ever happen, of those listed or of those that ranks alone imply, as in tiktoken's
// files.
//
// Of all merges that make the same token, at most one happens: when a token is made somewhere in a
// text, all merges inside its bytes came in the order in which they come when its bytes are
// alone, because each was then the smallest, leftmost one inside these bytes too, and none crossed
// their border. So the last merge of its bytes alone is the only one that makes it; a token that
// its own bytes do not merge to is never made by merging at all. Two vocabularies of the same
// tokens whose merges that happen are the same, in the same order, merge every text alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "encode/merger.h"
#include "encode/model.h"
#include "encode/symbols.h"
#include "encode/vocabulary.h"
#include "table/merge_table.h"

namespace bpe {

namespace ranked {

template <typename F>
void for_each_longer_token(const Vocabulary& vocabulary, F&& f) {
  for (uint32_t id = 0; id < vocabulary.size(); ++id)
    if (vocabulary.has(id) && vocabulary[id].size() > 1) f(id);
}

// Bytes of tokens that for_each_split looks at, at most. A vocabulary of text has millions.
inline constexpr uint64_t kMostBytes = uint64_t{1} << 31;

// Calls f(left, right, id) for every way to write a token as two tokens. Throws
// std::invalid_argument where a hostile file has so many that neither time nor memory is bounded.
template <typename F>
void for_each_split(const Vocabulary& vocabulary, F&& f) {
  std::vector<bool> is_size;
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    const size_t size = vocabulary[id].size();
    if (size >= is_size.size()) is_size.resize(size + 1);
    is_size[size] = size > 0;
  }
  uint64_t bytes = 0;
  for_each_longer_token(vocabulary, [&](uint32_t id) {
    const auto token = vocabulary[id];
    for (size_t size = 1; size < token.size(); ++size) {
      if (!is_size[size] || !is_size[token.size() - size]) continue;
      if ((bytes += token.size()) > kMostBytes)
        throw std::invalid_argument(
            "the tokens are the joins of two others in too many ways: no vocabulary of text");
      const uint32_t left = vocabulary.find(token.first(size));
      if (left == Vocabulary::kNone) continue;
      const uint32_t right = vocabulary.find(token.subspan(size));
      if (right != Vocabulary::kNone) f(left, right, id);
    }
  });
}

// What the tokens of a model consist of. Throws std::invalid_argument where a byte has no token.
inline Symbols symbols_of(const Vocabulary& vocabulary, Model::Kind kind) {
  return {vocabulary, {.kind = kind}, std::vector<bool>(vocabulary.size(), false)};
}

// Throws Unencodable where a character has no token.
inline void spell(const Symbols& symbols, Bytes token, std::vector<uint32_t>& out) {
  out.resize(Symbols::most(token.size()));
  out.resize(symbols.write(token, out.data()));
}

// The merges of a vocabulary in which each token is made of two that come before it, in the order
// of the ids, which is what training makes: the bytes of each token, merged by the tokens before
// it, become two. Nothing where one becomes more. (With all ways to make a token in the table, the
// merges before its last would be the same: none of them has its rank or a greater one.)
inline std::optional<std::vector<uint32_t>> merges_in_order(const Vocabulary& vocabulary,
                                                            const Symbols& symbols_of) {
  MergeTable table(vocabulary.size());
  Merger merger;
  std::vector<uint32_t> merges, symbols;
  merges.reserve(3 * vocabulary.size());
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.has(id)) continue;
    spell(symbols_of, vocabulary[id], symbols);
    if (symbols.size() < 2) continue;
    if (merger.merge(table, symbols.data(), symbols.size(), 2) != 2) return std::nullopt;
    table.insert(symbols[0], symbols[1], id, id);
    merges.insert(merges.end(), {symbols[0], symbols[1], id});
  }
  return merges;
}

// The one merge of `table` that makes each token, as (left, right, result), by rank.
inline std::vector<uint32_t> merges_that_happen(const Vocabulary& vocabulary,
                                                const Symbols& symbols_of,
                                                const MergeTable& table) {
  struct Last {
    Rank rank;
    uint32_t left, right, result;
  };
  std::vector<Last> found;
  std::vector<uint32_t> symbols;
  Merger merger;
  for_each_longer_token(vocabulary, [&](uint32_t id) {
    spell(symbols_of, vocabulary[id], symbols);
    if (merger.merge(table, symbols.data(), symbols.size(), 2) != 2) return;
    const Rank last = table.find(symbols[0], symbols[1]).rank;
    if (last != kNoMerge) found.push_back({last, symbols[0], symbols[1], id});
  });
  std::ranges::sort(found, {}, &Last::rank);
  std::vector<uint32_t> merges;
  for (const Last& one : found) merges.insert(merges.end(), {one.left, one.right, one.result});
  return merges;
}

}  // namespace ranked

// The merges of a vocabulary that is given by ranks alone: two neighbours merge whenever their
// bytes together are a token, and the rank of the merge is that token's id. Tokens that no merge
// makes are missing. Throws std::invalid_argument where a single byte has no token, and where
// tokens can be written as two tokens in too many ways. kind: bytes, or characters, each of which
// has a token (else throws Unencodable).
inline std::vector<uint32_t> merges_of_ranks(const Vocabulary& vocabulary,
                                             Model::Kind kind = Model::Kind::bytes) {
  const Symbols symbols = ranked::symbols_of(vocabulary, kind);
  if (auto merges = ranked::merges_in_order(vocabulary, symbols)) return *std::move(merges);
  size_t splits = 0;
  ranked::for_each_split(vocabulary, [&](uint32_t, uint32_t, uint32_t) { ++splits; });
  MergeTable table(splits);
  ranked::for_each_split(vocabulary, [&](uint32_t left, uint32_t right, uint32_t id) {
    table.insert(left, right, id, id);
  });
  return ranked::merges_that_happen(vocabulary, symbols, table);
}

// Of a list of merges, (left, right, result) with the first merge first, those that happen. Throws
// std::invalid_argument where a single byte or a part of a merge has no token.
inline std::vector<uint32_t> merges_that_happen(const Vocabulary& vocabulary,
                                                std::span<const uint32_t> merges,
                                                Model::Kind kind = Model::Kind::bytes) {
  const Symbols symbols = ranked::symbols_of(vocabulary, kind);
  MergeTable table(merges.size() / 3);
  for (size_t i = 0; i + 2 < merges.size(); i += 3) {
    for (const uint32_t id : merges.subspan(i, 3))
      if (!vocabulary.has(id))
        throw std::invalid_argument("merge " + std::to_string(i / 3) + " is of the id " +
                                    std::to_string(id) + ", which no token has");
    table.insert(merges[i], merges[i + 1], static_cast<Rank>(i / 3), merges[i + 2]);
  }
  return ranked::merges_that_happen(vocabulary, symbols, table);
}

}  // namespace bpe
