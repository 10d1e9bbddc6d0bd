// Merges across pre-tokens, after all merges inside them (SuperBPE, arXiv 2503.13423).
//
// A run is a sequence of pre-tokens that follow each other, each of which is one token that takes
// part in a superword merge. In a run, the superword merge of lowest rank, leftmost first, is made
// until none is left.
//
// Where no superword merge takes the last pre-token of its left side from before a border and the
// first one of its right side from after it, the run is cut: nothing ever merges over the border.
// Two marks and a filter say so of most borders, and the pieces between are short.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "encode/listed_merges.h"
#include "encode/marks.h"
#include "encode/merger.h"
#include "encode/vocabulary.h"
#include "table/hash.h"
#include "table/merge_table.h"

namespace bpe {

// Immutable once made.
class Superwords {
 public:
  // superwords, merges: (left, right, result), by rank; merges are those inside pre-tokens. Throws
  // std::invalid_argument, naming the merge, as merge_table() does for the superwords, and where a
  // merge inside pre-tokens takes a token that superwords alone make.
  Superwords(const Vocabulary& vocabulary, std::span<const uint32_t> superwords,
             std::span<const uint32_t> merges, const std::vector<bool>& is_special)
      : table_(merge_table(vocabulary, is_special, superwords, "superword merge")),
        is_alone_(vocabulary.size(), false),
        marks_(vocabulary.size(), 0) {
    find_alone(vocabulary, superwords, merges);
    find_borders(vocabulary, superwords);
  }

  // Whether superwords alone make each token: no pre-token is it.
  const std::vector<bool>& is_alone() const { return is_alone_; }
  const std::vector<uint8_t>& marks() const { return marks_; }

  // Merges a row of marked ids in place and takes the marks away. Returns how many ids are left.
  size_t merge(std::span<uint32_t> row, Merger& merger) const {
    const bool drops = merger.dropout.has_value();  // merges of a whole run, in their order
    size_t kept = 0;
    for (size_t i = 0; i < row.size();) {
      uint32_t* const piece = row.data() + kept;
      size_t size = 0;
      uint32_t id;
      do {
        id = row[i];
        piece[size++] = id & Marks::kId;
      } while (++i < row.size() &&
               (drops ? std::min(id, row[i]) > Marks::kId : may_cross(id, row[i])));
      kept += merger.merge(table_, piece, size);
    }
    return kept;
  }

 private:
  // Marks: a merge may take the pre-token as the last of its left side, the first of its right.
  static constexpr uint8_t kLast = 1, kFirst = 2;

  using Ids = std::vector<uint32_t>;

  bool may_cross(uint32_t before, uint32_t after) const {
    if (!(before & uint32_t{kLast} << Marks::kShift) ||
        !(after & uint32_t{kFirst} << Marks::kShift))
      return false;
    const uint32_t left = before & Marks::kId, right = after & Marks::kId;
    const uint64_t hash = hash_of(left, right);
    const bool crosses = filter_[(hash >> 6) & (filter_.size() - 1)] >> (hash & 63) & 1;
    if (crosses) table_.prefetch(left, right);
    return crosses;
  }
  uint64_t hash_of(uint32_t before, uint32_t after) const {
    return hash_words((uint64_t{before} << 32) | after, 0, seeds_);
  }

  void find_alone(const Vocabulary& vocabulary, std::span<const uint32_t> superwords,
                  std::span<const uint32_t> merges) {
    for (size_t i = 2; i < superwords.size(); i += 3) is_alone_[superwords[i]] = true;
    for (size_t i = 2; i < merges.size(); i += 3)
      if (vocabulary.has(merges[i])) is_alone_[merges[i]] = false;
    for (size_t i = 0; i < merges.size(); ++i)
      if (vocabulary.has(merges[i]) && is_alone_[merges[i]])
        throw std::invalid_argument("merge " + std::to_string(i / 3) + " takes token " +
                                    std::to_string(merges[i]) +
                                    ", which superword merges alone make");
  }

  // Which pre-tokens a superword can begin and end with. A token may be made of several sequences
  // of pre-tokens; a file that nobody trained may have more borders than there is memory for. Then
  // all borders between parts of merges count.
  void find_borders(const Vocabulary& vocabulary, std::span<const uint32_t> superwords) {
    const size_t merges = superwords.size() / 3;
    std::vector<size_t> order(merges);  // parts are shorter than what they make
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, {},
                             [&](size_t i) { return vocabulary[superwords[3 * i + 2]].size(); });
    std::unordered_map<uint32_t, Ids> firsts, lasts;
    const size_t most = kMostBorders * merges + 1024;
    size_t size = 0;
    for (const size_t i : order) {
      const uint32_t* const merge = &superwords[3 * i];
      size += add(firsts, merge[2], merge[0]) + add(lasts, merge[2], merge[1]);
      if (size > most) break;
    }
    size_t borders = 0;
    for (size_t i = 0; i < merges && size <= most && borders <= most; ++i)
      borders += of(lasts, superwords[3 * i]).size() * of(firsts, superwords[3 * i + 1]).size();
    if (size > most || borders > most) {
      for (size_t i = 0; i < superwords.size(); ++i)
        if (i % 3 != 2) marks_[superwords[i]] = kLast | kFirst;
      filter_.assign(1, ~uint64_t{0});
    } else {
      filter_.assign(std::bit_ceil(borders * kFilterBits / 64 + 1), 0);
      for (size_t i = 0; i < merges; ++i)
        for (const uint32_t before : of(lasts, superwords[3 * i]))
          for (const uint32_t after : of(firsts, superwords[3 * i + 1])) {
            marks_[before] |= kLast;
            marks_[after] |= kFirst;
            const uint64_t hash = hash_of(before, after);
            filter_[(hash >> 6) & (filter_.size() - 1)] |= uint64_t{1} << (hash & 63);
          }
    }
  }

  // The pre-tokens at one end of a token.
  Ids of(const std::unordered_map<uint32_t, Ids>& ends, uint32_t id) const {
    const auto found = ends.find(id);
    return found == ends.end() ? Ids{id} : found->second;
  }

  // Adds those of a part to those of what it makes; returns how many are new.
  size_t add(std::unordered_map<uint32_t, Ids>& ends, uint32_t made, uint32_t part) const {
    const Ids more = of(ends, part);
    auto [place, is_new] = ends.try_emplace(made);
    Ids& ids = place->second;
    if (is_new && !is_alone_[made]) ids.push_back(made);
    const size_t before = is_new ? 0 : ids.size();
    ids.insert(ids.end(), more.begin(), more.end());
    std::ranges::sort(ids);
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids.size() - before;
  }

  static constexpr size_t kMostBorders = 64;  // for each merge
  static constexpr size_t kFilterBits = 16;   // for each border

  HashSeeds seeds_ = HashSeeds::get();
  MergeTable table_;
  std::vector<bool> is_alone_;
  std::vector<uint8_t> marks_;    // of each token
  std::vector<uint64_t> filter_;  // a bit for the hash of each border that a merge crosses
};

}  // namespace bpe
