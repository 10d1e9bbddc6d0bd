// Which characters of several bytes are tokens from the start, so that their bytes need no merging.
//
// A character c of a text, whose bytes merge to one token T when they are alone, with merges up
// to rank r, is sure to become T if
//   1. each merge of a token that ends before c with a token that c's first bytes are on the way to
//      T has a rank above r,
//   2. each merge of a token that c's last bytes are on the way to T with one that begins after c
//      has a rank above r,
//   3. each merge that takes T has a rank above r.
// While c is not yet T, one of its own merges can be made, of rank r or below; by 1 and 2 no merge
// over its borders comes before that, so its bytes become T as they do alone. And a text that holds
// T from the start merges alike: by 3 whatever T takes part in comes after all merges that made it,
// and the other merges keep their order. One character after the other can be replaced so.
//
// 1 and 2 are asked for each neighbouring byte that is not ASCII, and for all of ASCII together,
// but the space: a token that ends with one often takes the first byte of a letter early.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "encode/merger.h"
#include "encode/vocabulary.h"
#include "table/merge_table.h"
#include "table/zeroed_array.h"
#include "text/utf8.h"

namespace bpe {

class Characters {
 public:
  // of_byte: the token of each byte. merges: (left, right, result) of `table`, by rank.
  Characters(const Vocabulary& vocabulary, const std::array<uint32_t, 256>& of_byte,
             const MergeTable& table, std::span<const uint32_t> merges)
      : of_byte_(of_byte), known_(kCodePoints) {
    const Borders borders(vocabulary, merges);
    Merger merger;
    for (uint32_t id = 0; id < vocabulary.size(); ++id) {
      const Bytes token = vocabulary[id];
      if (token.size() < 2 || token.size() > 4) continue;
      const Decoded step = decode_utf8(token.data(), token.data() + token.size());
      if (step.code_point == kMalformed || step.size != token.size()) continue;
      Character found{{}, {}, id};
      if (!are_sure(token, table, borders, merger, found)) continue;
      known_[step.code_point] = static_cast<uint32_t>(characters_.size() + 1);
      characters_.push_back(found);
    }
  }

  // Writes tokens that a word is sure to hold at some time while it is merged, and returns how many
  // they are: no more than its bytes.
  size_t write(Bytes word, uint32_t* out) const {
    const uint32_t* const begin = out;
    const uint8_t* const first = word.data();
    const uint8_t* const end = first + word.size();
    for (const uint8_t* p = first; p != end;) {
      if (*p < 0x80) {
        *out++ = of_byte_[*p++];
        continue;
      }
      const Decoded step = decode_utf8(p, end);
      const uint8_t* const next = p + step.size;
      const uint32_t known = step.code_point == kMalformed ? 0 : known_[step.code_point];
      if (known != 0) {
        const Character& character = characters_[known - 1];
        if ((p == first || character.after[neighbour(p[-1])]) &&
            (next == end || character.before[neighbour(*next)])) {
          *out++ = character.id;
          p = next;
          continue;
        }
      }
      while (p != next) *out++ = of_byte_[*p++];
    }
    return static_cast<size_t>(out - begin);
  }

 private:
  // Neighbouring bytes: those beyond ASCII by their low six bits (so that a byte that leads a
  // character, and one that continues it, are one), then ASCII, then the space.
  static constexpr size_t kAscii = 64, kSpace = 65, kNeighbours = 66;
  static size_t neighbour(uint8_t byte) {
    return byte >= 0x80 ? byte % 64 : byte == ' ' ? kSpace : kAscii;
  }

  using Neighbours = std::bitset<kNeighbours>;

  // A token, and after and before which bytes it is sure.
  struct Character {
    Neighbours after, before;
    uint32_t id;
  };

  // The lowest rank of a merge with a token that ends, or begins, with each neighbouring byte.
  using Ranks = std::array<Rank, kNeighbours>;
  static void lower(Rank& rank, Rank other) { rank = std::min(rank, other); }

  // Of the tokens that are less than a character: those ranks. Of all tokens: the lowest one.
  class Borders {
   public:
    Borders(const Vocabulary& vocabulary, std::span<const uint32_t> merges)
        : lowest_(vocabulary.size(), kNoMerge), place_(vocabulary.size(), 0), ranks_(1) {
      ranks_[0].fill(kNoMerge);
      for (size_t i = 0; i + 2 < merges.size(); i += 3) {
        const uint32_t left = merges[i], right = merges[i + 1];
        const auto rank = static_cast<Rank>(i / 3);
        lower(lowest_[left], rank);
        lower(lowest_[right], rank);
        if (begins_character(vocabulary[right]))
          lower(ranks_of(right)[neighbour(vocabulary[left].back())], rank);
        if (ends_character(vocabulary[left]))
          lower(ranks_of(left)[neighbour(vocabulary[right].front())], rank);
      }
    }

    Rank lowest(uint32_t id) const { return lowest_[id]; }
    const Ranks& operator[](uint32_t id) const { return ranks_[place_[id]]; }

   private:
    // A lead byte and perhaps more, or bytes that continue: no token is both.
    static bool begins_character(Bytes token) { return token.size() < 4 && token[0] >= 0xC0; }
    static bool ends_character(Bytes token) {
      return token.size() < 4 && token[0] >= 0x80 && token[0] < 0xC0;
    }

    Ranks& ranks_of(uint32_t id) {
      if (place_[id] == 0) {
        place_[id] = static_cast<uint32_t>(ranks_.size());
        ranks_.emplace_back().fill(kNoMerge);
      }
      return ranks_[place_[id]];
    }

    std::vector<Rank> lowest_;
    std::vector<uint32_t> place_;  // in ranks_
    std::vector<Ranks> ranks_;     // the first is that of tokens without merges
  };

  // Merges the bytes of a character by themselves, and says next to which bytes they merge alike;
  // false where they do not merge to its token, or that merges too early.
  bool are_sure(Bytes token, const MergeTable& table, const Borders& borders, Merger& merger,
                Character& found) const {
    std::array<uint32_t, 4> symbols{};
    size_t size = token.size();
    for (size_t i = 0; i < size; ++i) symbols[i] = of_byte_[token[i]];
    Ranks after, before;  // the lowest of all that stood at a border on the way
    after.fill(kNoMerge);
    before.fill(kNoMerge);
    Rank highest = 0;
    for (; size > 1; --size) {
      const Ranks &left = borders[symbols[0]], &right = borders[symbols[size - 1]];
      for (size_t i = 0; i < kNeighbours; ++i) {
        lower(after[i], left[i]);
        lower(before[i], right[i]);
      }
      Rank due = kNoMerge;
      for (size_t i = 0; i + 1 < size; ++i) lower(due, table.find(symbols[i], symbols[i + 1]).rank);
      if (due == kNoMerge) return false;
      highest = std::max(highest, due);
      merger.merge(table, symbols.data(), size, size - 1);
    }
    found.after = above(after, highest);
    found.before = above(before, highest);
    return symbols[0] == found.id && borders.lowest(found.id) > highest;
  }

  static Neighbours above(const Ranks& ranks, Rank rank) {
    Neighbours found;
    for (size_t i = 0; i < kNeighbours; ++i) found[i] = ranks[i] > rank;
    return found;
  }

  std::array<uint32_t, 256> of_byte_;
  ZeroedArray<uint32_t> known_;  // of each code point: its place in characters_ and one, or 0
  std::vector<Character> characters_;
};

}  // namespace bpe
