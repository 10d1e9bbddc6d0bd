// Sorted counts: distinct pre-tokens in byte order, each with its count; and their sum.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "table/buffer.h"
#include "table/hash.h"

namespace bpe {

using Bytes = std::span<const uint8_t>;

// Where a pre-token was first seen: the place of its document, its index among the pre-tokens of
// that document.
struct Place {
  int64_t document, position;
  auto operator<=>(const Place&) const = default;
};

// The first 15 bytes of a key, zeros after a shorter one, then its length (255 from 16 bytes on),
// as one big-endian number of 128 bits. Keys of up to 15 bytes compare as these numbers do; equal
// numbers of longer keys leave the bytes from the 16th on to compare.
struct SortKey {
  uint64_t high, low;

  static constexpr size_t kPrefix = 15;
  static constexpr uint8_t kLong = 255;

  explicit SortKey(Bytes key) {
    uint8_t padded[16] = {};
    std::memcpy(padded, key.data(), std::min(key.size(), kPrefix));
    padded[15] = key.size() > kPrefix ? kLong : static_cast<uint8_t>(key.size());
    high = __builtin_bswap64(load_le64(padded));
    low = __builtin_bswap64(load_le64(padded + 8));
  }

  bool is_long() const { return static_cast<uint8_t>(low) == kLong; }
  auto operator<=>(const SortKey&) const = default;
};

// Order of two keys that are longer than SortKey::kPrefix and share their SortKey.
inline std::strong_ordering compare_tails(Bytes a, Bytes b) {
  const Bytes x = a.subspan(SortKey::kPrefix), y = b.subspan(SortKey::kPrefix);
  const int order = std::memcmp(x.data(), y.data(), std::min(x.size(), y.size()));
  return order != 0 ? order <=> 0 : x.size() <=> y.size();
}

inline std::strong_ordering compare(const SortKey& x, Bytes a, const SortKey& y, Bytes b) {
  const auto order = x <=> y;
  return order != 0 || !x.is_long() ? order : compare_tails(a, b);
}

// A number of shards. Throws std::invalid_argument on others.
inline uint32_t checked_shards(int64_t shards) {
  if (shards < 1 || shards > int64_t{UINT32_MAX})
    throw std::invalid_argument("the number of shards must be at least 1, got " +
                                std::to_string(shards));
  return static_cast<uint32_t>(shards);
}

// A key for an error message, as Python would print it, cut after 40 bytes.
inline std::string printable(Bytes key) {
  static constexpr size_t kShown = 40;
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "b'";
  for (const uint8_t byte : key.first(std::min(key.size(), kShown))) {
    if (byte < 0x20 || byte >= 0x7f) {
      text += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      if (byte == '\'' || byte == '\\') text += '\\';
      text += static_cast<char>(byte);
    }
  }
  text += '\'';
  if (key.size() > kShown) text += "... (" + std::to_string(key.size()) + " bytes)";
  return text;
}

// The columns of sorted counts while they are filled; keys must come in byte order, each once.
struct CountsColumns {
  std::vector<uint8_t> data;
  std::vector<int64_t> offsets{0};
  std::vector<int64_t> counts;
  std::vector<int64_t> documents, positions;  // empty where order is not tracked

  void reserve(size_t rows, size_t bytes, bool ordered) {
    data.reserve(bytes);
    offsets.reserve(rows + 1);
    counts.reserve(rows);
    if (ordered) {
      documents.reserve(rows);
      positions.reserve(rows);
    }
  }

  void add(Bytes key, int64_t count, const std::optional<Place>& first) {
    data.insert(data.end(), key.begin(), key.end());
    offsets.push_back(static_cast<int64_t>(data.size()));
    counts.push_back(count);
    if (first) {
      documents.push_back(first->document);
      positions.push_back(first->position);
    }
  }
};

// Immutable. Keys are not empty and strictly ascend; counts are positive; places not negative.
class SortedCounts {
 public:
  // Trusts the columns; check() is for those that come from outside.
  SortedCounts(CountsColumns columns, bool ordered)
      : rows_(columns.counts.size()),
        data_(std::move(columns.data)),
        offsets_(std::move(columns.offsets)),
        counts_(std::move(columns.counts)) {
    if (ordered) {
      documents_.emplace(std::move(columns.documents));
      positions_.emplace(std::move(columns.positions));
    }
  }

  size_t size() const { return rows_; }
  bool ordered() const { return documents_.has_value(); }
  const Buffer& data() const { return data_; }
  const Buffer& offsets() const { return offsets_; }
  const Buffer& counts() const { return counts_; }
  const std::optional<Buffer>& documents() const { return documents_; }
  const std::optional<Buffer>& positions() const { return positions_; }

  Bytes key(size_t row) const {
    const int64_t begin = number(offsets_, row);
    return {data_.data() + begin, static_cast<size_t>(number(offsets_, row + 1) - begin)};
  }
  int64_t count(size_t row) const { return number(counts_, row); }
  // Nothing where order is not tracked.
  std::optional<Place> first(size_t row) const {
    if (!ordered()) return std::nullopt;
    return Place{number(*documents_, row), number(*positions_, row)};
  }

  // Throws std::invalid_argument on the first row that breaks this promise.
  void check() const {
    std::optional<SortKey> last;
    for (size_t row = 0; row < rows_; ++row) {
      const Bytes bytes = key(row);
      const auto fail = [&](const std::string& what) {
        throw std::invalid_argument("row " + std::to_string(row) + ", pre-token " +
                                    printable(bytes) + ": " + what);
      };
      if (bytes.empty()) fail("a pre-token is never empty");
      if (count(row) < 1) fail("count " + std::to_string(count(row)) + " is not positive");
      if (const auto place = first(row); place && (place->document < 0 || place->position < 0))
        fail("the place where it was first seen is negative");
      const SortKey sort_key(bytes);
      if (last) {
        const auto order = compare(*last, key(row - 1), sort_key, bytes);
        if (order == 0) fail("it stands there twice");
        if (order > 0) fail("it is not in byte order after " + printable(key(row - 1)));
      }
      last = sort_key;
    }
  }

  // The sum of all counts; throws std::overflow_error past 2^63 - 1.
  int64_t total() const {
    int64_t sum = 0;
    for (size_t row = 0; row < rows_; ++row)
      if (__builtin_add_overflow(sum, count(row), &sum))
        throw std::overflow_error("the sum of all counts passes 2^63 - 1");
    return sum;
  }

  // Sorted counts for each shard: the keys whose stable_hash % shards is its number.
  std::vector<std::shared_ptr<SortedCounts>> split(int64_t shards) const {
    std::vector<CountsColumns> columns(checked_shards(shards));
    for (size_t row = 0; row < rows_; ++row) {
      const Bytes bytes = key(row);
      columns[stable_hash(bytes.data(), bytes.size()) % columns.size()].add(bytes, count(row),
                                                                            first(row));
    }
    std::vector<std::shared_ptr<SortedCounts>> of_shards;
    of_shards.reserve(columns.size());
    for (CountsColumns& column : columns)
      of_shards.push_back(std::make_shared<SortedCounts>(std::move(column), ordered()));
    return of_shards;
  }

  // The first row whose key does not belong to this shard, or -1.
  int64_t misplaced(int64_t shard, int64_t shards) const {
    const uint64_t count = checked_shards(shards);
    if (shard < 0 || shard >= shards) throw std::invalid_argument("no such shard");
    for (size_t row = 0; row < rows_; ++row) {
      const Bytes bytes = key(row);
      if (stable_hash(bytes.data(), bytes.size()) % count != static_cast<uint64_t>(shard))
        return static_cast<int64_t>(row);
    }
    return -1;
  }

 private:
  static int64_t number(const Buffer& buffer, size_t row) {
    return reinterpret_cast<const int64_t*>(buffer.data())[row];
  }

  size_t rows_;
  Buffer data_, offsets_, counts_;
  std::optional<Buffer> documents_, positions_;
};

using SortedCountsList = std::vector<std::shared_ptr<SortedCounts>>;

// The losses when rare pre-tokens are dropped. `at` holds 65,536 numbers, how often each pair
// of adjacent bytes occurred (at [first << 8 | second]), then 256, how often each byte ended one.
// Where keys are ids of `id_bytes` (0: they are text), each of the 65,536 is the sum for the pairs
// of adjacent ids that stable_hash puts there: no pair lost more.
struct Losses {
  static constexpr size_t kPairs = 1 << 16, kEnds = 1 << 8;

  size_t id_bytes = 0;

  int64_t rows = 0, occurrences = 0, bytes = 0;
  std::vector<int64_t> at = std::vector<int64_t>(kPairs + kEnds);

  // Throws std::overflow_error where a number passes 2^63 - 1.
  void add(Bytes key, int64_t count) {
    int64_t weight;
    bool over = __builtin_mul_overflow(static_cast<int64_t>(key.size()), count, &weight);
    over |= __builtin_add_overflow(bytes, weight, &bytes);
    over |= __builtin_add_overflow(occurrences, count, &occurrences);
    ++rows;
    const auto lose = [&](size_t i) { over |= __builtin_add_overflow(at[i], count, &at[i]); };
    if (id_bytes != 0) {
      for (size_t i = 0; i + 2 * id_bytes <= key.size(); i += id_bytes)
        lose(stable_hash(key.data() + i, 2 * id_bytes) % kPairs);
    } else {
      for (size_t i = 1; i < key.size(); ++i) lose(static_cast<size_t>(key[i - 1]) << 8 | key[i]);
      lose(kPairs + key.back());
    }
    if (over) throw std::overflow_error("what was pruned passes 2^63 - 1");
  }
};

// The rows with a count of at least `below`; the others go into `losses`.
inline std::shared_ptr<SortedCounts> pruned(const SortedCounts& counts, int64_t below,
                                            Losses& losses) {
  CountsColumns kept;
  for (size_t row = 0; row < counts.size(); ++row) {
    if (counts.count(row) < below)
      losses.add(counts.key(row), counts.count(row));
    else
      kept.add(counts.key(row), counts.count(row), counts.first(row));
  }
  return std::make_shared<SortedCounts>(std::move(kept), counts.ordered());
}

// The rows of several sorted counts in key order, through a binary heap of cursors.
class MergeCursors {
 public:
  explicit MergeCursors(const SortedCountsList& all) {
    for (const auto& counts : all)
      if (counts->size() > 0) heap_.push_back({counts.get(), 0, SortKey(counts->key(0))});
    for (size_t i = heap_.size() / 2; i-- > 0;) sink(i);
  }

  bool done() const { return heap_.empty(); }
  const SortedCounts& counts() const { return *heap_[0].counts; }
  size_t row() const { return heap_[0].row; }
  Bytes key() const { return heap_[0].counts->key(heap_[0].row); }

  bool at(const SortKey& sort_key, Bytes bytes) const {
    return !done() && compare(heap_[0].sort_key, key(), sort_key, bytes) == 0;
  }
  const SortKey& sort_key() const { return heap_[0].sort_key; }

  void advance() {
    Cursor& top = heap_[0];
    if (++top.row < top.counts->size()) {
      top.sort_key = SortKey(top.counts->key(top.row));
    } else {
      top = heap_.back();
      heap_.pop_back();
    }
    sink(0);
  }

 private:
  struct Cursor {
    const SortedCounts* counts;
    size_t row;
    SortKey sort_key;
  };

  bool before(const Cursor& a, const Cursor& b) const {
    return compare(a.sort_key, a.counts->key(a.row), b.sort_key, b.counts->key(b.row)) < 0;
  }

  void sink(size_t i) {
    while (true) {
      size_t least = i;
      for (size_t child = 2 * i + 1; child < std::min(2 * i + 3, heap_.size()); ++child)
        if (before(heap_[child], heap_[least])) least = child;
      if (least == i) return;
      std::swap(heap_[i], heap_[least]);
      i = least;
    }
  }

  std::vector<Cursor> heap_;
};

// Counts of equal keys are added, the earliest place is kept: any order and any grouping of the
// counts gives the same sum. Throws std::overflow_error where a count passes 2^63 - 1, and
// std::invalid_argument where only some of the counts (empty ones aside) know the order.
inline std::shared_ptr<SortedCounts> add_counts(const SortedCountsList& all) {
  bool ordered = !all.empty();
  size_t rows = 0, bytes = 0, with_rows = 0, with_order = 0;
  for (const auto& one : all) {
    rows = std::max(rows, one->size());
    bytes = std::max(bytes, one->data().size());
    with_rows += one->size() > 0;
    with_order += one->size() > 0 && one->ordered();
    ordered = ordered && one->ordered();
  }
  if (with_rows > 0) {
    if (with_order != 0 && with_order != with_rows)
      throw std::invalid_argument(
          "some counts know where pre-tokens were first seen, others do not");
    ordered = with_order > 0;
  }
  CountsColumns merged;
  merged.reserve(rows, bytes, ordered);
  MergeCursors cursors(all);
  while (!cursors.done()) {
    const Bytes key = cursors.key();
    const SortKey sort_key = cursors.sort_key();
    int64_t count = cursors.counts().count(cursors.row());
    std::optional<Place> first = cursors.counts().first(cursors.row());
    for (cursors.advance(); cursors.at(sort_key, key); cursors.advance()) {
      if (__builtin_add_overflow(count, cursors.counts().count(cursors.row()), &count))
        throw std::overflow_error("the count of pre-token " + printable(key) + " passes 2^63 - 1");
      first = std::min(first, cursors.counts().first(cursors.row()));
    }
    merged.add(key, count, first);
  }
  return std::make_shared<SortedCounts>(std::move(merged), ordered);
}

}  // namespace bpe
