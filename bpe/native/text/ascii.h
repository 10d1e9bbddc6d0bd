// Sixteen bytes of text at a time: which of them are ASCII letters, digits, white space, symbols.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "table/hash.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace bpe {

// Sets of positions in a block: bit i represents byte i. All are of 16 bits.
using Positions = uint32_t;

// The sets of a block, by three that it has: beyond_ascii(), equal(value), and those from `first`
// to `last`, where the bits of `set` are set first.
template <class Block>
class BlockSets {
 public:
  static constexpr size_t kSize = 16;

  Positions upper() const { return block().between('A', 'Z', 0); }
  Positions lower() const { return block().between('a', 'z', 0); }
  Positions letters() const { return block().between('a', 'z', 0x20); }
  Positions digits() const { return block().between('0', '9', 0); }
  Positions newlines() const { return block().equal('\n') | block().equal('\r'); }
  Positions spaces() const { return block().equal(' '); }
  Positions white() const { return block().between('\t', '\r', 0) | spaces(); }
  Positions apostrophes() const { return block().equal('\''); }
  Positions slashes() const { return block().equal('/'); }

 private:
  const Block& block() const { return static_cast<const Block&>(*this); }
};

// In plain arithmetic on words of eight bytes, for any machine (Lamport 1975, "Multiple byte
// processing with full-word instructions").
class PortableBlock : public BlockSets<PortableBlock> {
 public:
  explicit PortableBlock(const uint8_t* p) : low_(load_le64(p)), high_(load_le64(p + 8)) {}

  Positions beyond_ascii() const { return gather(low_ & kTops) | gather(high_ & kTops) << 8; }
  Positions equal(char value) const {
    const auto byte = static_cast<uint8_t>(value);
    return between(byte, byte, 0);
  }
  Positions between(uint64_t first, uint64_t last, uint8_t set) const {
    const auto find = [&](uint64_t word) {
      // Without top bits no sum carries into the next byte.
      const uint64_t seven = (word | set * kOnes) & ~kTops;
      const uint64_t from = seven + (0x80 - first) * kOnes, past = seven + (0x7F - last) * kOnes;
      return gather(from & ~past & ~word & kTops);
    };
    return find(low_) | find(high_) << 8;
  }

 private:
  static constexpr uint64_t kOnes = 0x0101010101010101;
  static constexpr uint64_t kTops = 0x8080808080808080;

  // The top bits of eight bytes as the lowest eight bits.
  static Positions gather(uint64_t tops) {
    return static_cast<Positions>((tops >> 7) * 0x0102040810204080 >> 56);
  }
  uint64_t low_, high_;
};

#ifdef __SSE2__

// The same with vectors. Every x86-64 has SSE2: nothing is chosen at run time.
class Sse2Block : public BlockSets<Sse2Block> {
 public:
  // Reads kSize bytes.
  explicit Sse2Block(const uint8_t* p)
      : bytes_(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))) {}

  Positions beyond_ascii() const { return positions(bytes_); }
  // Of a character of ASCII.
  Positions equal(char value) const {
    return positions(_mm_cmpeq_epi8(bytes_, _mm_set1_epi8(value)));
  }
  // SSE2 compares signed bytes: the range is moved to the lower end of them.
  Positions between(char first, char last, char set) const {
    const __m128i moved = _mm_add_epi8(_mm_or_si128(bytes_, _mm_set1_epi8(set)),
                                       _mm_set1_epi8(static_cast<char>(-128 - first)));
    return positions(
        _mm_cmplt_epi8(moved, _mm_set1_epi8(static_cast<char>(-128 + (last - first) + 1))));
  }

 private:
  static Positions positions(__m128i set) { return static_cast<Positions>(_mm_movemask_epi8(set)); }
  __m128i bytes_;
};

using AsciiBlock = Sse2Block;

#else

using AsciiBlock = PortableBlock;

#endif

// Sets of positions in 64 bytes.
using Positions64 = uint64_t;

// Those below `end`, which is at most 64.
inline Positions64 positions_below(size_t end) {
  return end == 64 ? ~Positions64{0} : (Positions64{1} << end) - 1;
}

// Four blocks that follow each other.
template <class Block>
class Window {
 public:
  static constexpr size_t kSize = 4 * Block::kSize;

  // Reads kSize bytes.
  explicit Window(const uint8_t* p)
      : blocks_{Block(p), Block(p + Block::kSize), Block(p + 2 * Block::kSize),
                Block(p + 3 * Block::kSize)} {}

  // The positions of a set of Block in all of them. Inlined: each set is a few instructions.
  template <auto Set>
  [[gnu::always_inline]] Positions64 find() const {
    Positions64 found = 0;
    for (size_t i = 0; i < 4; ++i) found |= Positions64{(blocks_[i].*Set)()} << (i * Block::kSize);
    return found;
  }

 private:
  std::array<Block, 4> blocks_;
};

}  // namespace bpe
