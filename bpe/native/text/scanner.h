// The pre-tokenizers: hand-written scanners that cut a text where their regular expressions do.
//
// The patterns stand in bpe/pretokenize.py. They are matched leftmost, first alternative first.
// At any character few alternatives can match, and what backtracking would find is known before
// it happens (the comments say why), so each step looks a bounded number of times at each
// character: time is linear in the text, whatever the text is.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "text/ascii.h"
#include "text/normalizer.h"
#include "text/scheme.h"
#include "text/unicode.h"

namespace bpe {

// The pre-tokens of [begin, end), in order. Any bytes are a text: where no well-formed UTF-8
// starts, one byte is a character of class kOther. A scanner is where it stands and what it knows
// of the bytes ahead; copy it freely. Block looks at sixteen bytes at a time (ascii.h).
template <Scheme S, class Block = AsciiBlock>
class Scanner {
 public:
  Scanner(const uint8_t* begin, const uint8_t* end) : at_(begin), end_(end) {}

  // The next pre-token (never empty); false at the end of the text.
  bool next(const uint8_t*& begin, const uint8_t*& end) {
    if constexpr (S == Scheme::words || S == Scheme::bert) at_ = skip<kWhite>(at_, end_);
    if constexpr (S == Scheme::spaces)
      while (at_ != end_ && *at_ == ' ') ++at_;
    if constexpr (kHasWindow) {
      if (ends_ == 0 && end_ - at_ >= static_cast<ptrdiff_t>(Window<Block>::kSize)) {
        window_ = at_;
        ends_ = look_ahead(at_, end_);
      }
      if (ends_ != 0) {
        begin = at_;
        end = at_ = window_ + std::countr_zero(ends_);
        ends_ &= ends_ - 1;
        return true;
      }
    }
    if (at_ == end_) return false;
    begin = at_;
    end = at_ = look(at_, end_);
    return true;
  }

 private:
  // Not of this scanner, so that it may live in registers.
  [[gnu::noinline]] static Positions64 look_ahead(const uint8_t* p, const uint8_t* end) {
    return Scanner(p, end).ends_ahead(p);
  }
  static const uint8_t* look(const uint8_t* p, const uint8_t* end) {
    const Scanner scanner(p, end);
    if (end - p >= static_cast<ptrdiff_t>(Block::kSize))
      if (const size_t size = scanner.short_ascii(p)) return p + size;
    return scanner.match(p);
  }

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

  static constexpr bool kHasWindow = S == Scheme::gpt2 || S == Scheme::cl100k ||
                                     S == Scheme::o200k || S == Scheme::llama3 ||
                                     S == Scheme::qwen2;

  // Where the pre-tokens end that the 64 bytes at p, where one begins, tell all of: by arithmetic
  // on sets of positions, all at once, where looking for one end after the other has each wait for
  // the last. What is rare is left to match(), which decides the same.
  Positions64 ends_ahead(const uint8_t* p) const {
    if (Block(p).beyond_ascii()) return 0;
    const Window<Block> window(p);
    auto known =
        static_cast<size_t>(std::countr_zero(window.template find<&Block::beyond_ascii>()));
    const Positions64 letters = window.template find<&Block::letters>(),
                      digits = window.template find<&Block::digits>(),
                      white = window.template find<&Block::white>(),
                      spaces = window.template find<&Block::spaces>();
    const Positions64 symbols = ~(letters | digits | white);
    const Positions64 symbol = first(symbols) & ~(spaces << 1);  // a pre-token begins with it
    // White space begins a pre-token, the last of it another one, which may take more along.
    Positions64 starts = symbol | first(white) | last(white);
    if constexpr (S == Scheme::gpt2) {
      starts |= (first(letters) | first(digits)) & ~(spaces << 1);
    } else {
      const Positions64 alone = symbol & last(symbols);  // goes with letters behind it
      starts |= number_starts(digits) | (first(letters) & ~(white << 1) & ~(alone << 1));
      if constexpr (S == Scheme::o200k)
        starts |= window.template find<&Block::upper>() & window.template find<&Block::lower>()
                                                              << 1;
      if (const Positions64 newlines = window.template find<&Block::newlines>()) {
        const Positions64 slashes =
            S == Scheme::o200k ? window.template find<&Block::slashes>() : 0;
        if (!are_last(newlines, white, slashes, known))
          known = std::min(known, static_cast<size_t>(std::countr_zero(newlines)));
        // They go with symbols, or else white space, before them, and end it.
        starts &= ~newlines | (first(white) & ~(symbols << 1));
        starts |= last(newlines) << 1;
      }
    }
    const Positions64 quotes = window.template find<&Block::apostrophes>();
    starts = with_contractions(p, starts, quotes & (S == Scheme::o200k ? letters << 1 : symbol));
    // The byte behind a position decides about it too; at p itself nothing ends.
    return known < 2 ? 0 : starts & positions_below(known - 1) & ~Positions64{1};
  }

  static Positions64 first(Positions64 runs) { return runs & ~(runs << 1); }
  static Positions64 last(Positions64 runs) { return runs & ~(runs >> 1); }

  // Whether behind the line ends, and white space behind them, no other line end follows, and no
  // slash right behind them.
  static bool are_last(Positions64 newlines, Positions64 white, Positions64 slashes, size_t known) {
    const Positions64 behind = last(newlines) << 1;
    const Positions64 rest = white & ~newlines & positions_below(known);
    const Positions64 sum = rest + (behind & rest);  // carries to the end of white space
    return sum >= rest && !(sum & ~rest & (newlines | ~positions_below(known))) &&
           !(behind & slashes);
  }

  // Numbers begin after each three digits, in qwen2 after each.
  static Positions64 number_starts(Positions64 digits) {
    if constexpr (S == Scheme::qwen2) return digits;
    const Positions64 fourth = digits & digits << 1 & digits << 2 & digits << 3;
    Positions64 starts = first(digits);
    for (Positions64 more = starts << 3 & fourth; more; more = more << 3 & fourth) starts |= more;
    return starts;
  }

  // Of apostrophes, those of contractions: pre-tokens, or in o200k the ends of words.
  Positions64 with_contractions(const uint8_t* p, Positions64 starts, Positions64 quotes) const {
    size_t past = 0;
    for (; quotes; quotes &= quotes - 1) {
      const auto at = static_cast<size_t>(std::countr_zero(quotes));
      const uint8_t* const end = contraction<S != Scheme::gpt2>(p + at);
      if (!end || (S == Scheme::o200k && at == past)) continue;
      past = static_cast<size_t>(end - p);
      const size_t inside = S == Scheme::o200k ? at : at + 1;
      starts &= ~positions_below(std::min<size_t>(past, 64)) | positions_below(inside);
      if (past < 64) starts |= Positions64{1} << past;
    }
    return starts;
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
  const uint8_t* window_ = nullptr;
  Positions64 ends_ = 0;  // of pre-tokens, from window_ on
};

}  // namespace bpe
