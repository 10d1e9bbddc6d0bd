// Strings of bytes by their beginnings.
#pragma once

#include <cstddef>
#include <cstdint>

#include "table/bytes.h"
#include "table/merge_table.h"

namespace bpe {

// A node is a number, and stands for what leads to it from its root.
class Trie {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // With roots 0, 1, ..., and room for so many bytes of strings.
  Trie(uint32_t roots, size_t bytes) : size_(roots), edges_(bytes) {}

  // Of nodes.
  size_t size() const { return size_; }

  // The node after a byte, or kNone.
  uint32_t child(uint32_t node, uint8_t byte) const { return edges_.find(node, byte).rank; }

  uint32_t find_or_add(uint32_t node, uint8_t byte) {
    if (edges_.insert(node, byte, size_, size_)) return size_++;
    return child(node, byte);
  }

 private:
  uint32_t size_;
  MergeTable edges_;
};

}  // namespace bpe
