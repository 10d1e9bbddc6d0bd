// Counts the pre-tokens of texts. Special tokens are cut out first and not counted; what is
// between them is pre-tokenized by itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "count/count_batch.h"
#include "count/count_table.h"
#include "text/scanner.h"
#include "text/special.h"
#include "text/text_column.h"

namespace bpe {

// Safe to call from several threads, one at a time gets through.
class Counter {
 public:
  Counter(Pretokenizer pretokenizer, std::vector<std::string> special_tokens, bool track_order)
      : pretokenizer_(std::move(pretokenizer)),
        special_(std::move(special_tokens)),
        ordered_(track_order),
        table_(track_order) {}

  // Counts the texts of a column and returns how many pre-tokens they have. `places` holds the
  // place of each document in the corpus, where neighbours of one place are parts of one document;
  // it may be empty where order is not tracked.
  int64_t add(const TextColumn& column, std::span<const int64_t> places) {
    require_pattern(pretokenizer_);
    check_places(places, column.rows());
    const std::lock_guard lock(mutex_);
    return ordered_ ? add_rows<true>(column, places) : add_rows<false>(column, places);
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return table_.size();
  }

  size_t nbytes() const {
    const std::lock_guard lock(mutex_);
    return table_.nbytes();
  }

  SortedCountsList drain(int64_t shards) {
    const std::lock_guard lock(mutex_);
    return table_.drain(shards);
  }

 private:
  void check_places(std::span<const int64_t> places, size_t rows) const {
    if (!ordered_) return;
    if (places.size() != rows)
      throw std::invalid_argument("tracking order needs one place for each of " +
                                  std::to_string(rows) + " rows, got " +
                                  std::to_string(places.size()));
    for (size_t row = 0; row < rows; ++row)
      if (places[row] < 0)
        throw std::invalid_argument("the place of row " + std::to_string(row) +
                                    " is negative: " + std::to_string(places[row]));
  }

  template <bool Ordered>
  int64_t add_rows(const TextColumn& column, std::span<const int64_t> places) {
    CountBatch<Ordered> batch(table_, column.readable());
    int64_t total = 0;
    for (size_t row = 0; row < column.rows(); ++row) {
      if (!Ordered || batch.place.document != places[row]) {
        total += batch.place.position;
        batch.place = {Ordered ? places[row] : 0, 0};
      }
      special_.cut(
          column[row], [&](Bytes text) { each_pretoken(pretokenizer_, text, batch); },
          [](size_t, Bytes) {});
    }
    batch.flush();
    return total + batch.place.position;
  }

  const Pretokenizer pretokenizer_;
  const SpecialMatcher special_;
  const bool ordered_;
  mutable std::mutex mutex_;
  CountTable table_;
};

}  // namespace bpe
