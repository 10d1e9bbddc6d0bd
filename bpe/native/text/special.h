// Finds special tokens in text: the leftmost match, and of those that begin there the longest.
// Flags say what a token takes of the text around it, or where it is none.
//
// An Aho-Corasick automaton (Aho and Corasick 1975): one step a byte, so no text can make it
// quadratic, whatever its tokens share. After a match the search looks ahead for at most the
// length of the longest token before it may report it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "table/bytes.h"
#include "table/trie.h"
#include "text/normalizer.h"
#include "text/unicode.h"

namespace bpe {

// The flags of Hugging Face's AddedToken.
inline constexpr uint8_t kLeftStrip = 1;   // takes the whitespace before it
inline constexpr uint8_t kRightStrip = 2;  // takes the whitespace after it
inline constexpr uint8_t kSingleWord = 4;  // is none next to a character of a word (\w)

class SpecialMatcher {
 public:
  // flags: of each token; empty if none has any. Throws std::invalid_argument on an empty or
  // repeated token.
  explicit SpecialMatcher(std::vector<std::string> tokens, std::vector<uint8_t> flags = {})
      : tokens_(std::move(tokens)), flags_(std::move(flags)) {
    if (flags_.empty()) flags_.resize(tokens_.size());
    if (flags_.size() != tokens_.size())
      throw std::invalid_argument("special tokens need one number of flags each");
    build_trie();
    build_failures();
  }

  // How many tokens there are.
  size_t size() const { return tokens_.size(); }

  // Calls on_text(text) for what is between the special tokens of a text, where that is not empty,
  // and on_token(which, text) for each token with what it takes, in order. `which` counts in the
  // order in which the tokens were given. As find_matches of Hugging Face's added_vocabulary.rs: a
  // token that begins in the whitespace that the one before has taken is found too, and text goes
  // on after it.
  template <class OnText, class OnToken>
  void cut(Bytes text, OnText&& on_text, OnToken&& on_token) const {
    const uint8_t *const begin = text.data(), *const end = begin + text.size();
    const uint8_t* rest = begin;    // what is left begins here
    const uint8_t* spaces = begin;  // the whitespace that was last taken to the right ends here
    for (const uint8_t* p = begin; p != end;) {
      size_t which = 0;
      const uint8_t* from = find(p, end, which);
      if (from == end) break;
      p = from + tokens_[which].size();
      const uint8_t flags = flags_[which];
      if ((flags & kSingleWord) && (ends_in_word(begin, from) || begins_with_word(p, end)))
        continue;
      if (flags & kLeftStrip) from = rest < from ? begin_of_spaces(rest, from) : rest;
      const uint8_t* to = p;
      if (flags & kRightStrip) {
        if (p >= spaces) spaces = bpe::skip<kWhite>(p, end);
        to = spaces;
      }
      if (rest < from) on_text(Bytes(rest, from));
      if (from < to) on_token(which, Bytes(from, to));
      rest = to;
    }
    if (rest != end) on_text(Bytes(rest, end));
  }

 private:
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNone = UINT32_MAX;

  static const uint8_t* begin_of_spaces(const uint8_t* begin, const uint8_t* end) {
    while (begin != end) {
      const uint8_t* const p = character_before(begin, end);
      if (!(read(p, end).kind & kWhite)) break;
      end = p;
    }
    return end;
  }

  static bool ends_in_word(const uint8_t* begin, const uint8_t* end) {
    return begin != end && begins_with_word(character_before(begin, end), end);
  }

  static bool begins_with_word(const uint8_t* begin, const uint8_t* end) {
    return begin != end && (properties_of(decode_utf8(begin, end).code_point) & kWord);
  }

  // Where the next special token begins, and which one it is; `end` where there is none.
  const uint8_t* find(const uint8_t* p, const uint8_t* end, size_t& which) const {
    if (tokens_.empty()) return end;
    const uint8_t* best = nullptr;  // the best match so far begins here
    uint32_t state = kRoot;
    while (true) {
      if (state == kRoot) {
        if (best) return best;
        p = skip(p, end);
      }
      if (p == end) return best ? best : end;
      state = step(state, *p++);
      if (best && p - nodes_[state].depth > best) return best;
      if (const uint32_t token = nodes_[state].longest; token != kNone) {
        const uint8_t* begin = p - tokens_[token].size();
        if (!best || begin <= best) {
          best = begin;
          which = token;
        }
      }
    }
  }

  struct Node {
    uint32_t parent, depth;
    uint8_t byte;              // that leads here from the parent
    uint32_t failure = kRoot;  // the longest proper suffix of this node's string in the trie
    uint32_t longest = kNone;  // the longest token that ends here
  };

  // Where the walk from the root can first move: all bytes before are plain text.
  const uint8_t* skip(const uint8_t* p, const uint8_t* end) const {
    if (begins_alike_) {
      if (p == end) return end;
      const void* hit = std::memchr(p, nodes_[1].byte, static_cast<size_t>(end - p));
      return hit ? static_cast<const uint8_t*>(hit) : end;
    }
    while (p != end && from_root_[*p] == kRoot) ++p;
    return p;
  }

  uint32_t step(uint32_t state, uint8_t byte) const {
    while (state != kRoot) {
      if (const uint32_t next = trie_.child(state, byte); next != kNone) return next;
      state = nodes_[state].failure;
    }
    return from_root_[byte];
  }

  void build_trie() {
    size_t bytes = 0;
    for (const std::string& token : tokens_) bytes += token.size();
    if (bytes >= kNone) throw std::invalid_argument("special tokens are too long");
    trie_ = Trie(1, bytes);
    for (uint32_t i = 0; i < tokens_.size(); ++i) {
      const auto fail = [&](const char* what) {
        throw std::invalid_argument("special token " + std::to_string(i) + what);
      };
      if (tokens_[i].empty()) fail(" is empty");
      uint32_t node = kRoot;
      for (const uint8_t byte : bytes_of(tokens_[i])) {
        const uint32_t parent = std::exchange(node, trie_.find_or_add(node, byte));
        if (node == nodes_.size()) nodes_.push_back({parent, nodes_[parent].depth + 1, byte});
      }
      if (nodes_[node].longest != kNone) fail(" is given twice");
      nodes_[node].longest = i;
    }
  }

  // Shorter strings come first: failures lead to them.
  void build_failures() {
    std::vector<uint32_t> order(nodes_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, {}, [&](uint32_t node) { return nodes_[node].depth; });
    from_root_.fill(kRoot);
    for (const uint32_t number : std::span(order).subspan(1)) {
      Node& node = nodes_[number];
      if (node.depth == 1)
        from_root_[node.byte] = number;
      else
        node.failure = step(nodes_[node.parent].failure, node.byte);
      if (node.longest == kNone) node.longest = nodes_[node.failure].longest;
    }
    begins_alike_ = std::ranges::count(nodes_, 1u, &Node::depth) == 1;
  }

  std::vector<std::string> tokens_;
  std::vector<uint8_t> flags_;
  Trie trie_{1, 0};
  std::vector<Node> nodes_{{kRoot, 0, 0}};
  std::array<uint32_t, 256> from_root_;
  bool begins_alike_ = false;  // all tokens, with the byte of node 1
};

}  // namespace bpe
