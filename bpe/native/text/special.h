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
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "text/normalizer.h"
#include "text/unicode.h"

namespace bpe {

// The flags of Hugging Face's AddedToken.
inline constexpr uint8_t kLeftStrip = 1;   // takes the whitespace before it
inline constexpr uint8_t kRightStrip = 2;  // takes the whitespace after it
inline constexpr uint8_t kSingleWord = 4;  // is none next to a character of a word (\w)
inline constexpr uint8_t kNormalized = 8;  // is searched for in what the others leave

class SpecialMatcher {
 public:
  SpecialMatcher() : SpecialMatcher(std::vector<std::string>{}) {}

  // flags: of each token; empty if none has any. Throws std::invalid_argument on an empty or
  // repeated token.
  explicit SpecialMatcher(std::vector<std::string> tokens, std::vector<uint8_t> flags = {})
      : tokens_(std::move(tokens)), flags_(std::move(flags)) {
    if (flags_.empty()) flags_.resize(tokens_.size());
    if (flags_.size() != tokens_.size())
      throw std::invalid_argument("special tokens need one number of flags each");
    divide();
    build_trie();
    build_failures();
  }

  // Calls on_text(begin, end) for what is between the special tokens of [p, end), where that is
  // not empty, and on_token(which, begin, end) for each token with what it takes, in order. `which`
  // counts in the order in which the tokens were given.
  template <class OnText, class OnToken>
  void cut(const uint8_t* p, const uint8_t* end, OnText&& on_text, OnToken&& on_token) const {
    if (!later_) return cut_once(p, end, on_text, on_token);
    const auto numbered = [&](const std::vector<size_t>& numbers) {
      return [&](size_t which, const uint8_t* from, const uint8_t* to) {
        on_token(numbers[which], from, to);
      };
    };
    const auto cut_later = [&](const uint8_t* from, const uint8_t* to) {
      later_->cut_once(from, to, on_text, numbered(later_numbers_));
    };
    cut_once(p, end, cut_later, numbered(numbers_));
  }

 private:
  static constexpr uint32_t kRoot = 0;
  static constexpr uint32_t kNone = UINT32_MAX;

  // Moves the tokens that are searched for later to a matcher of their own, if there are others.
  void divide() {
    const auto is_later = [](uint8_t flags) { return (flags & kNormalized) != 0; };
    if (std::all_of(flags_.begin(), flags_.end(), is_later) ||
        std::none_of(flags_.begin(), flags_.end(), is_later))
      return;
    std::vector<std::string> tokens[2];
    std::vector<uint8_t> flags[2];
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const bool later = is_later(flags_[i]);
      tokens[later].push_back(std::move(tokens_[i]));
      flags[later].push_back(flags_[i]);
      (later ? later_numbers_ : numbers_).push_back(i);
    }
    tokens_ = std::move(tokens[0]);
    flags_ = std::move(flags[0]);
    later_ = std::make_shared<const SpecialMatcher>(std::move(tokens[1]), std::move(flags[1]));
  }

  // As find_matches of Hugging Face's added_vocabulary.rs. A token that begins in the whitespace
  // that the one before has taken is found too, and text goes on after it.
  template <class OnText, class OnToken>
  void cut_once(const uint8_t* const text, const uint8_t* end, OnText&& on_text,
                OnToken&& on_token) const {
    const uint8_t* rest = text;    // what is left begins here
    const uint8_t* spaces = text;  // the whitespace that was last taken to the right ends here
    for (const uint8_t* p = text; p != end;) {
      size_t which = 0;
      const uint8_t* from = find(p, end, which);
      if (from == end) break;
      p = from + tokens_[which].size();
      const uint8_t flags = flags_[which];
      if ((flags & kSingleWord) && (ends_in_word(text, from) || begins_with_word(p, end))) continue;
      if (flags & kLeftStrip) from = rest < from ? begin_of_spaces(rest, from) : rest;
      const uint8_t* to = p;
      if (flags & kRightStrip) {
        if (p >= spaces) spaces = bpe::skip<kWhite>(p, end);
        to = spaces;
      }
      if (rest < from) on_text(rest, from);
      if (from < to) on_token(which, from, to);
      rest = to;
    }
    if (rest != end) on_text(rest, end);
  }

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

  // The children of a node are the nodes [first, first + children), ordered by their byte.
  struct Node {
    uint32_t first = 0;
    uint32_t failure = kRoot;  // the longest proper suffix of this node's string in the trie
    uint32_t longest = kNone;  // the longest token that ends here
    uint32_t depth = 0;
    uint16_t children = 0;
    uint8_t byte = 0;
  };

  // Where the walk from the root can first move: all bytes before are plain text.
  const uint8_t* skip(const uint8_t* p, const uint8_t* end) const {
    if (nodes_[kRoot].children == 1) {
      if (p == end) return end;
      const void* hit = std::memchr(p, nodes_[1].byte, static_cast<size_t>(end - p));
      return hit ? static_cast<const uint8_t*>(hit) : end;
    }
    while (p != end && from_root_[*p] == kRoot) ++p;
    return p;
  }

  // The child of `state` for `byte`, or kNone.
  uint32_t child(uint32_t state, uint8_t byte) const {
    const Node* low = nodes_.data() + nodes_[state].first;
    const Node* high = low + nodes_[state].children;
    const Node* found = std::lower_bound(
        low, high, byte, [](const Node& node, uint8_t value) { return node.byte < value; });
    return found != high && found->byte == byte ? static_cast<uint32_t>(found - nodes_.data())
                                                : kNone;
  }

  uint32_t step(uint32_t state, uint8_t byte) const {
    while (state != kRoot) {
      if (const uint32_t next = child(state, byte); next != kNone) return next;
      state = nodes_[state].failure;
    }
    return from_root_[byte];
  }

  // Breadth first over the sorted tokens: each node is the range of tokens that share a prefix.
  void build_trie() {
    std::vector<uint32_t> order(tokens_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return tokens_[a] < tokens_[b]; });
    for (size_t i = 0; i < order.size(); ++i) {
      const auto fail = [&](const char* what) {
        throw std::invalid_argument("special token " + std::to_string(order[i]) + what);
      };
      if (tokens_[order[i]].empty()) fail(" is empty");
      if (i > 0 && tokens_[order[i]] == tokens_[order[i - 1]]) fail(" is given twice");
    }
    struct Range {
      size_t begin, end;
    };
    std::vector<Range> ranges{{0, order.size()}};  // parallel to nodes_
    nodes_.assign(1, Node{});
    for (uint32_t node = 0; node < nodes_.size(); ++node) {
      auto [begin, end] = ranges[node];
      const uint32_t depth = nodes_[node].depth;
      nodes_[node].first = static_cast<uint32_t>(nodes_.size());
      if (begin < end && tokens_[order[begin]].size() == depth)
        nodes_[node].longest = order[begin++];
      while (begin < end) {
        const char byte = tokens_[order[begin]][depth];
        size_t next = begin;
        while (next < end && tokens_[order[next]][depth] == byte) ++next;
        if (nodes_.size() == kNone) throw std::invalid_argument("special tokens are too long");
        Node made;
        made.depth = depth + 1;
        made.byte = static_cast<uint8_t>(byte);
        nodes_.push_back(made);
        ranges.push_back({begin, next});
        ++nodes_[node].children;
        begin = next;
      }
    }
  }

  void build_failures() {
    from_root_.fill(kRoot);
    for (uint32_t i = 0; i < nodes_[kRoot].children; ++i) from_root_[nodes_[1 + i].byte] = 1 + i;
    for (uint32_t node = 0; node < nodes_.size(); ++node) {
      for (uint32_t i = 0; i < nodes_[node].children; ++i) {
        Node& made = nodes_[nodes_[node].first + i];
        made.failure = node == kRoot ? kRoot : step(nodes_[node].failure, made.byte);
        if (made.longest == kNone) made.longest = nodes_[made.failure].longest;
      }
    }
  }

  std::vector<std::string> tokens_;
  std::vector<uint8_t> flags_;
  std::vector<Node> nodes_;
  std::array<uint32_t, 256> from_root_;
  // The tokens that are searched for later, if there are others, and the numbers of both.
  std::shared_ptr<const SpecialMatcher> later_;
  std::vector<size_t> numbers_;
  std::vector<size_t> later_numbers_;
};

}  // namespace bpe
