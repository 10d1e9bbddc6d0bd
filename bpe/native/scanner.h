// The pre-tokenizers: hand-written scanners that cut a text where their regular expressions do.
//
// The patterns stand in bpe/pretokenize.py. They are matched leftmost, first alternative first.
// At any character few alternatives can match, and what backtracking would find is known before
// it happens (the comments say why), so each step looks a bounded number of times at each
// character: time is linear in the text, whatever the text is.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "ascii.h"
#include "normalizer.h"
#include "unicode.h"

namespace bpe {

enum class Scheme : uint8_t { gpt2, cl100k, o200k, llama3, qwen2, words, spaces, bert, none };

inline constexpr std::array<std::string_view, 9> kSchemeNames = {
    "gpt2", "cl100k", "o200k", "llama3", "qwen2", "words", "spaces", "bert", "none"};

inline Scheme scheme_from_name(std::string_view name) {
  std::string valid;
  for (size_t i = 0; i < kSchemeNames.size(); ++i) {
    if (kSchemeNames[i] == name) return static_cast<Scheme>(i);
    valid.append(i == 0 ? "" : ", ").append(kSchemeNames[i]);
  }
  throw std::invalid_argument("unknown pre-tokenizer '" + std::string(name) + "'; valid: " + valid);
}

// The pre-tokens of [begin, end), in order. Any bytes are a text: where no well-formed UTF-8
// starts, one byte is a character of class kOther. A scanner is two pointers; copy it freely.
// Block looks at sixteen bytes at a time (ascii.h).
template <Scheme S, class Block = AsciiBlock>
class Scanner {
 public:
  Scanner(const uint8_t* begin, const uint8_t* end) : at_(begin), end_(end) {}

  // The next pre-token (never empty); false at the end of the text.
  bool next(const uint8_t*& begin, const uint8_t*& end) {
    if constexpr (S == Scheme::words || S == Scheme::bert) at_ = skip<kWhite>(at_, end_);
    if constexpr (S == Scheme::spaces)
      while (at_ != end_ && *at_ == ' ') ++at_;
    if (at_ == end_) return false;
    begin = at_;
    if (end_ - at_ >= static_cast<ptrdiff_t>(Block::kSize)) {
      if (const size_t size = short_ascii(at_)) {
        end = at_ += size;
        return true;
      }
    }
    end = at_ = match(at_);
    return true;
  }

 private:
  const uint8_t* match(const uint8_t* p) const {
    if constexpr (S == Scheme::none) {
      return end_;
    } else if constexpr (S == Scheme::words) {
      return skip<kLetter | kNumber | kSymbol>(p, end_);
    } else if constexpr (S == Scheme::spaces) {
      const void* space = std::memchr(p, ' ', static_cast<size_t>(end_ - p));
      return space ? static_cast<const uint8_t*>(space) : end_;
    } else if constexpr (S == Scheme::bert) {
      return bert(p);
    } else if constexpr (S == Scheme::gpt2) {
      return gpt2(p);
    } else {
      return prefixed(p);
    }
  }

  // One character of punctuation, or all that is neither that nor white space.
  const uint8_t* bert(const uint8_t* p) const {
    for (const uint8_t* const begin = p; p != end_;) {
      const Decoded step = decode_utf8(p, end_);
      if (class_of(step.code_point) & kWhite) return p;
      if (properties_of(step.code_point) & kPunctuation) return p == begin ? p + step.size : p;
      p += step.size;
    }
    return end_;
  }

  // The size of the pre-token at p if the next 16 bytes, all ASCII up to its end and one byte more,
  // tell it; else 0. What is rare is left to match(), which decides the same.
  size_t short_ascii(const uint8_t* p) const {
    if constexpr (S == Scheme::gpt2) {
      return short_gpt2(p);
    } else if constexpr (S == Scheme::cl100k || S == Scheme::o200k || S == Scheme::llama3 ||
                         S == Scheme::qwen2) {
      return short_prefixed(p);
    } else {
      return 0;
    }
  }

  // 0 unless the byte behind the pre-token is an ASCII character of the block.
  static size_t told(const Block& block, size_t size) {
    const Positions unsure = block.beyond_ascii() | 1u << Block::kSize;
    return (unsure >> size & 1) ? 0 : size;
  }

  size_t short_gpt2(const uint8_t* p) const {
    const Block block(p);
    const size_t first = *p == ' ';
    const uint8_t kind = kAscii[p[first]];
    if (kind & kLetter) return told(block, first + run_from(block.letters(), first));
    if (*p == '\'') return 0;  // perhaps a contraction
    if (kind & kNumber) return told(block, first + run_from(block.digits(), first));
    if (kind & kSymbol) {
      const Positions symbols =
          ~(block.letters() | block.digits() | block.white() | block.beyond_ascii());
      return told(block, first + run_from(symbols & 0xFFFF, first));
    }
    return short_white_space(block, 0);
  }

  size_t short_prefixed(const uint8_t* p) const {
    const Block block(p);
    const uint8_t kind = kAscii[*p];
    if (kind & kLetter) return short_word(p, block, 0);
    const uint8_t after = kAscii[p[1]];
    if (after & kLetter && kind & (kSpace | kSymbol) && *p != '\'') return short_word(p, block, 1);
    if (kind == 0 || after == 0 || *p == '\'') return 0;
    if (kind & kNumber) {
      if constexpr (S == Scheme::qwen2) return 1;
      return told(block, std::min<size_t>(3, run_from(block.digits(), 0)));
    }
    if (kind & kSymbol || (*p == ' ' && after & kSymbol)) {
      const Positions symbols =
          ~(block.letters() | block.digits() | block.white() | block.beyond_ascii());
      const size_t first = *p == ' ';
      const size_t size = told(block, first + run_from(symbols & 0xFFFF, first));
      return kAscii[p[size]] & kNewline ? 0 : size;
    }
    return short_white_space(block, block.newlines());
  }

  // The word at p + first.
  size_t short_word(const uint8_t* p, const Block& block, size_t first) const {
    if constexpr (S == Scheme::o200k) {
      size_t size = first + run_from(block.upper(), first);
      size += run_from(block.lower(), size);
      size = told(block, size);
      return p[size] == '\'' ? 0 : size;  // perhaps a contraction
    }
    return told(block, first + run_from(block.letters(), first));
  }

  // White space at the beginning of the block that nothing takes along, as in white_space().
  static size_t short_white_space(const Block& block, Positions newlines) {
    const size_t run = run_from(block.white(), 0);
    if (!told(block, run)) return 0;
    const Positions in_run = newlines & ((1u << run) - 1);
    if (in_run) return static_cast<size_t>(std::bit_width(in_run));
    return run > 1 ? run - 1 : 1;
  }

  // A space is taken along by letters, numbers or symbols; at most that one character of white
  // space is ever before them.
  const uint8_t* gpt2(const uint8_t* p) const {
    if (const uint8_t* e = contraction</*AnyCase=*/false>(p)) return e;
    Character c = read(p, end_);
    if (*p == ' ' && c.next < end_) {
      const Character after = read(c.next, end_);
      if (!(after.kind & kWhite)) c = after;
    }
    if (c.kind & kLetter) return skip<kLetter>(c.next, end_);
    if (c.kind & kNumber) return skip<kNumber>(c.next, end_);
    if (c.kind & kSymbol) return skip<kSymbol>(c.next, end_);
    return white_space(p);
  }

  // cl100k and its kin: any one character but a letter, a number, CR or LF goes before letters.
  const uint8_t* prefixed(const uint8_t* p) const {
    // What a word may begin with. In o200k a mark is part of a word: as the optional prefix or as
    // its first character, the match ends at the same place, so it is never taken as the prefix.
    constexpr uint8_t initial = S == Scheme::o200k ? kLetter | kMark : kLetter;
    if constexpr (S != Scheme::o200k)
      if (const uint8_t* e = contraction</*AnyCase=*/true>(p)) return e;
    const Character c = read(p, end_);
    if (c.kind & initial) return word(p);
    if (c.kind & kNumber) return number(c.next);
    if (c.next < end_) {
      const Character after = read(c.next, end_);
      if (!(c.kind & kNewline) && (after.kind & initial)) return word(c.next);
      if (*p == ' ' && (after.kind & kSymbol)) return symbols(after.next);
    }
    if (c.kind & kSymbol) return symbols(c.next);
    return white_space(p);
  }

  const uint8_t* word(const uint8_t* p) const {
    if constexpr (S == Scheme::o200k) {
      const uint8_t* e = cased_word(p);
      const uint8_t* suffix = contraction</*AnyCase=*/true>(e);
      return suffix ? suffix : e;
    }
    return skip<kLetter>(p, end_);
  }

  // o200k's [upper]*[lower]+ or else [upper]+[lower]*, where caseless letters and marks are in
  // both sets. [upper]* takes all it can. If a lower letter follows, [lower]+ begins there.
  // Otherwise [upper]* gives characters back until [lower]+ can take one: the last one of both
  // sets, and no more, since only upper letters come after it. With none of both sets the first
  // form fails, and the second is the run of upper letters.
  const uint8_t* cased_word(const uint8_t* p) const {
    const uint8_t* e = p;
    const uint8_t* both = nullptr;  // the end of the last character that is in both sets
    for (;;) {
      e = skip<kUpper>(e, end_);
      const uint8_t* run = e;
      e = skip<kCaseless | kMark>(e, end_);
      if (e == run) break;
      both = e;
    }
    const uint8_t* lower = skip<kLower | kCaseless | kMark>(e, end_);
    if (lower != e) return lower;
    return both ? both : e;
  }

  // \p{N}{1,3}, or \p{N} alone in qwen2, of which one number ends at p.
  const uint8_t* number(const uint8_t* p) const {
    if constexpr (S == Scheme::qwen2) return p;
    for (int more = 0; more < 2 && p < end_; ++more) {
      const Character c = read(p, end_);
      if (!(c.kind & kNumber)) break;
      p = c.next;
    }
    return p;
  }

  // The rest of the symbols, and the line ends (in o200k slashes too) right after them.
  const uint8_t* symbols(const uint8_t* p) const {
    p = skip<kSymbol>(p, end_);
    while (p < end_ && (*p == '\r' || *p == '\n' || (S == Scheme::o200k && *p == '/'))) ++p;
    return p;
  }

  // White space at p that nothing takes along: at the end of the text, in gpt2 and cl100k, all of
  // it (\s++$); else up to the last line end in it (\s*[\r\n], not in gpt2); else all if it ends
  // the text, or all but the last character, which may go with what follows (\s+(?!\S)); else
  // that one character. The run holds well-formed characters only, so it can be walked backwards.
  const uint8_t* white_space(const uint8_t* p) const {
    const uint8_t* e = skip<kWhite>(p, end_);
    if ((S == Scheme::gpt2 || S == Scheme::cl100k) && e == end_) return e;
    if constexpr (S != Scheme::gpt2)
      for (const uint8_t* q = e; q > p; --q)
        if (kAscii[q[-1]] & kNewline) return q;
    if (e == end_) return e;
    const uint8_t* last = e - 1;
    while ((*last & 0xC0) == 0x80) --last;
    return last == p ? e : last;
  }

  // The end of 's, 't, 'm, 'd, 'll, 've or 're at p (p may be the end), else null. In any case,
  // s is also U+017F (long s), which folds to it.
  template <bool AnyCase>
  const uint8_t* contraction(const uint8_t* p) const {
    if (end_ - p < 2 || *p != '\'') return nullptr;
    const auto at = [p](size_t i) -> uint8_t { return AnyCase ? p[i] | 0x20 : p[i]; };
    const uint8_t first = at(1);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return p + 2;
    if (end_ - p < 3) return nullptr;
    const uint8_t second = at(2);
    if ((first == 'l' && second == 'l') || ((first == 'v' || first == 'r') && second == 'e'))
      return p + 3;
    if (AnyCase && p[1] == 0xC5 && p[2] == 0xBF) return p + 3;
    return nullptr;
  }

  const uint8_t* at_;
  const uint8_t* end_;
};

// Calls f with the scheme as a constant of type std::integral_constant<Scheme, S>.
template <class F>
decltype(auto) with_scheme(Scheme scheme, F&& f) {
  switch (scheme) {
    case Scheme::gpt2:
      return f(std::integral_constant<Scheme, Scheme::gpt2>{});
    case Scheme::cl100k:
      return f(std::integral_constant<Scheme, Scheme::cl100k>{});
    case Scheme::o200k:
      return f(std::integral_constant<Scheme, Scheme::o200k>{});
    case Scheme::llama3:
      return f(std::integral_constant<Scheme, Scheme::llama3>{});
    case Scheme::qwen2:
      return f(std::integral_constant<Scheme, Scheme::qwen2>{});
    case Scheme::words:
      return f(std::integral_constant<Scheme, Scheme::words>{});
    case Scheme::spaces:
      return f(std::integral_constant<Scheme, Scheme::spaces>{});
    case Scheme::bert:
      return f(std::integral_constant<Scheme, Scheme::bert>{});
    case Scheme::none:
      return f(std::integral_constant<Scheme, Scheme::none>{});
  }
  throw std::invalid_argument("not a pre-tokenizer");
}

}  // namespace bpe
