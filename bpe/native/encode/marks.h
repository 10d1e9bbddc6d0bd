// Marks on the ids of pre-tokens that are one token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace bpe {

// While a row is encoded, the id of a pre-token that is one token carries the marks of that token
// in its upper two bits. Other ids have none: those of longer pre-tokens, of tokens that are cut
// out of a text, and of matches that are never split. So a sequence of marked ids is one of
// pre-tokens that follow each other.
class Marks {
 public:
  static constexpr int kShift = 30;
  static constexpr uint32_t kId = (uint32_t{1} << kShift) - 1;  // the bits of an id

  // of_id: 0 to 3 for each of so many tokens; none where nothing is marked.
  Marks(std::vector<uint8_t> of_id, size_t tokens) : of_id_(std::move(of_id)) {
    if (empty()) return;
    if (of_id_.size() != tokens) throw std::invalid_argument("marks are not one for each token");
    if (tokens > kId) throw std::invalid_argument("a vocabulary of 2^30 tokens cannot be marked");
  }

  bool empty() const { return of_id_.empty(); }
  // An id with the marks of its token.
  uint32_t marked(uint32_t id) const {
    return empty() ? id : id | (uint32_t{of_id_[id]} << kShift);
  }

 private:
  std::vector<uint8_t> of_id_;
};

}  // namespace bpe
