// Counts runs: adjacent pre-tokens, each of which is one token, as sequences of ids.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "count/count_batch.h"
#include "count/count_table.h"
#include "encode/encoder.h"
#include "encode/marks.h"
#include "text/text_column.h"

namespace bpe {

// A key is the ids of a run, each as id_bytes little-endian bytes. Threads may share a counter;
// they take turns. Where long runs are cut, it also counts each pair of adjacent tokens in those,
// pairs at the cuts included.
class RunCounter {
 public:
  // encoder: marks the tokens that runs consist of. max_run: longer runs are cut into pieces of so
  // many tokens, from their beginning on; 0 for no limit. A last piece of one token is left out.
  RunCounter(std::shared_ptr<const Encoder> encoder, size_t max_run, size_t id_bytes)
      : encoder_(std::move(encoder)),
        max_run_(max_run),
        id_bytes_(id_bytes),
        table_(false),
        cut_(false) {
    if (!encoder_) throw std::invalid_argument("runs need an encoder");
    if (max_run == 1) throw std::invalid_argument("a run has two tokens or more");
    if (id_bytes != 4 && (id_bytes != 2 || encoder_->vocabulary().size() > size_t{1} << 16))
      throw std::invalid_argument("ids do not fit so many bytes");
  }

  // Counts the runs of texts, as Encoder::encode cuts them, and returns how many they are.
  int64_t add(const TextColumn& column, const std::vector<int64_t>& cut_out) {
    const std::lock_guard lock(mutex_);
    int64_t total = 0;
    encoder_->encode(column, cut_out, {}, false, counting(total));
    return total;
  }

  // As Encoder::encode_pieces.
  int64_t add_pieces(Bytes data, std::span<const int64_t> pieces, std::span<const int64_t> row_ends,
                     bool cut) {
    const std::lock_guard lock(mutex_);
    int64_t total = 0;
    encoder_->encode_pieces(data, pieces, row_ends, cut, {}, false, counting(total));
    return total;
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return table_.size();
  }

  size_t nbytes() const {
    const std::lock_guard lock(mutex_);
    return table_.nbytes() + cut_.nbytes();
  }

  // A run of counts for each shard; then, where long runs are cut, that of the pairs in those.
  CountRuns drain(int64_t shards) {
    const std::lock_guard lock(mutex_);
    CountRuns runs = table_.drain(shards);
    if (max_run_ != 0) runs.push_back(cut_.drain(1).front());
    return runs;
  }

 private:
  // Adds the runs of rows to a total, and leaves no ids of them.
  FinishRow counting(int64_t& total) {
    return [this, &total](std::span<const uint32_t> row, Merger&, std::optional<Dropout>&) {
      total += add_row(row);
      return size_t{0};
    };
  }

  // Counts the runs of a row and returns how many they are.
  int64_t add_row(std::span<const uint32_t> row) {
    if (const size_t most = row.size() * id_bytes_ + kBehind; most > keys_.size())
      keys_.resize(most);
    const uint8_t* const readable = keys_.data() + keys_.size();
    CountBatch<false> batch(table_), cut(cut_);
    int64_t total = 0;
    uint8_t* to = keys_.data();
    for (size_t i = 0; i < row.size();) {
      const uint8_t* const begin = to;
      const size_t first = i;
      for (; i < row.size() && (row[i] & Marks::kMask) != 0; ++i)
        for (size_t byte = 0; byte < id_bytes_; ++byte)
          *to++ = static_cast<uint8_t>((row[i] & Marks::kId) >> (8 * byte));
      const size_t size = i - first, piece = max_run_ == 0 ? size : max_run_;
      for (size_t at = 0; size - at >= 2; at += std::min(piece, size - at)) {
        const size_t count = std::min(piece, size - at);
        batch.push(begin + at * id_bytes_, begin + (at + count) * id_bytes_, readable, {});
        ++total;
      }
      for (size_t at = 0; size > piece && at + 1 < size; ++at)
        cut.push(begin + at * id_bytes_, begin + (at + 2) * id_bytes_, readable, {});
      if (i < row.size()) ++i;
    }
    batch.flush();
    cut.flush();
    if (keys_.size() > kKeep) keys_ = {};
    return total;
  }

  static constexpr size_t kBehind = 16;  // bytes that a key's last load may read
  static constexpr size_t kKeep = size_t{1} << 24;

  const std::shared_ptr<const Encoder> encoder_;
  const size_t max_run_, id_bytes_;
  mutable std::mutex mutex_;
  CountTable table_, cut_;
  std::vector<uint8_t> keys_;  // of a row
};

}  // namespace bpe
