// Sorted counts: distinct pre-tokens in byte order, each with its count; and their sum.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <queue>
#include <stdexcept>
#include <string>
#include <vector>

#include "table/buffer.h"
#include "table/hash.h"

namespace bpe {

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

inline std::strong_ordering compare(Bytes a, Bytes b) { return chars_of(a) <=> chars_of(b); }

inline std::strong_ordering compare(const SortKey& x, Bytes a, const SortKey& y, Bytes b) {
  const auto order = x <=> y;
  return order != 0 || !x.is_long() ? order : compare(a, b);
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

// Distinct pre-tokens with their counts: immutable once filled. Keys are not empty and strictly
// ascend; counts are positive; places not negative.
struct SortedCounts {
  bool ordered;
  ByteStrings keys;
  std::vector<int64_t> counts;
  std::vector<int64_t> documents, positions;  // empty where order is not tracked

  explicit SortedCounts(bool ordered) : ordered(ordered) {}

  void reserve(size_t rows, size_t bytes) {
    keys.data.reserve(bytes);
    keys.offsets.reserve(rows + 1);
    counts.reserve(rows);
    documents.reserve(ordered ? rows : 0);
    positions.reserve(ordered ? rows : 0);
  }

  // Trusts what it is given: check() is for counts that come from outside.
  void add(Bytes key, int64_t count, const std::optional<Place>& first) {
    keys.add(key);
    counts.push_back(count);
    if (ordered) {
      documents.push_back(first->document);
      positions.push_back(first->position);
    }
  }

  size_t size() const { return counts.size(); }
  // Nothing where order is not tracked.
  std::optional<Place> first(size_t row) const {
    return ordered ? std::optional(Place{documents[row], positions[row]}) : std::nullopt;
  }

  // Throws std::invalid_argument on the first row that breaks this promise.
  void check() const {
    for (size_t row = 0; row < size(); ++row) {
      const Bytes key = keys[row];
      const auto fail = [&](const std::string& what) {
        throw std::invalid_argument("row " + std::to_string(row) + ", pre-token " + printable(key) +
                                    ": " + what);
      };
      if (key.empty()) fail("a pre-token is never empty");
      if (counts[row] < 1) fail("count " + std::to_string(counts[row]) + " is not positive");
      if (ordered && (documents[row] < 0 || positions[row] < 0))
        fail("the place where it was first seen is negative");
      if (row == 0) continue;
      const auto order = compare(keys[row - 1], key);
      if (order == 0) fail("it stands there twice");
      if (order > 0) fail("it is not in byte order after " + printable(keys[row - 1]));
    }
  }

  // The sum of all counts; throws std::overflow_error past 2^63 - 1.
  int64_t total() const {
    int64_t sum = 0;
    for (const int64_t count : counts)
      if (__builtin_add_overflow(sum, count, &sum))
        throw std::overflow_error("the sum of all counts passes 2^63 - 1");
    return sum;
  }

  // Sorted counts for each shard: the keys whose stable_hash % shards is its number.
  std::vector<std::shared_ptr<SortedCounts>> split(int64_t shards) const {
    std::vector<std::shared_ptr<SortedCounts>> of_shards(checked_shards(shards));
    for (auto& shard : of_shards) shard = std::make_shared<SortedCounts>(ordered);
    for (size_t row = 0; row < size(); ++row)
      of_shards[stable_hash(keys[row]) % of_shards.size()]->add(keys[row], counts[row], first(row));
    return of_shards;
  }

  // The first row whose key does not belong to this shard, or -1.
  int64_t misplaced(int64_t shard, int64_t shards) const {
    const uint64_t count = checked_shards(shards);
    if (shard < 0 || shard >= shards) throw std::invalid_argument("no such shard");
    for (size_t row = 0; row < size(); ++row)
      if (stable_hash(keys[row]) % count != static_cast<uint64_t>(shard))
        return static_cast<int64_t>(row);
    return -1;
  }
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

  // Throws std::overflow_error where the bytes, and with them any other number, may pass 2^63 - 1.
  void add(Bytes key, int64_t count) {
    int64_t weight;
    if (__builtin_mul_overflow(static_cast<int64_t>(key.size()), count, &weight) ||
        __builtin_add_overflow(bytes, weight, &bytes))
      throw std::overflow_error("what was pruned passes 2^63 - 1");
    occurrences += count;
    ++rows;
    if (id_bytes != 0) {
      for (size_t i = 0; i + 2 * id_bytes <= key.size(); i += id_bytes)
        at[stable_hash(key.subspan(i, 2 * id_bytes)) % kPairs] += count;
    } else {
      for (size_t i = 1; i < key.size(); ++i) at[size_t{key[i - 1]} << 8 | key[i]] += count;
      at[kPairs + key.back()] += count;
    }
  }
};

// The rows with a count of at least `below`; the others go into `losses`.
inline std::shared_ptr<SortedCounts> pruned(const SortedCounts& counts, int64_t below,
                                            Losses& losses) {
  auto kept = std::make_shared<SortedCounts>(counts.ordered);
  for (size_t row = 0; row < counts.size(); ++row) {
    if (counts.counts[row] < below)
      losses.add(counts.keys[row], counts.counts[row]);
    else
      kept->add(counts.keys[row], counts.counts[row], counts.first(row));
  }
  return kept;
}

// Counts of equal keys are added, the earliest place is kept: any order and any grouping of the
// counts gives the same sum. Throws std::overflow_error where a count passes 2^63 - 1, and
// std::invalid_argument where only some of the counts (empty ones aside) know the order.
inline std::shared_ptr<SortedCounts> add_counts(const SortedCountsList& all) {
  struct Cursor {
    const SortedCounts* counts;
    size_t row;
    SortKey sort_key;

    Bytes key() const { return counts->keys[row]; }
    bool operator<(const Cursor& other) const {  // the least one is on top
      return compare(sort_key, key(), other.sort_key, other.key()) > 0;
    }
  };
  std::priority_queue<Cursor> cursors;
  bool ordered = !all.empty();
  size_t rows = 0, bytes = 0, with_order = 0;
  for (const auto& one : all) {
    if (!one) throw std::invalid_argument("None is not sorted counts");
    rows = std::max(rows, one->size());
    bytes = std::max(bytes, one->keys.data.size());
    ordered = ordered && one->ordered;
    if (one->size() == 0) continue;
    with_order += one->ordered;
    cursors.push({one.get(), 0, SortKey(one->keys[0])});
  }
  if (!cursors.empty()) {
    if (with_order != 0 && with_order != cursors.size())
      throw std::invalid_argument(
          "some counts know where pre-tokens were first seen, others do not");
    ordered = with_order > 0;
  }
  auto merged = std::make_shared<SortedCounts>(ordered);
  merged->reserve(rows, bytes);
  while (!cursors.empty()) {
    const Cursor least = cursors.top();
    int64_t count = 0;
    std::optional<Place> first = least.counts->first(least.row);
    while (!cursors.empty() && !(cursors.top() < least)) {
      Cursor next = cursors.top();
      cursors.pop();
      if (__builtin_add_overflow(count, next.counts->counts[next.row], &count))
        throw std::overflow_error("the count of pre-token " + printable(least.key()) +
                                  " passes 2^63 - 1");
      first = std::min(first, next.counts->first(next.row));
      if (++next.row == next.counts->size()) continue;
      next.sort_key = SortKey(next.key());
      cursors.push(next);
    }
    merged->add(least.key(), count, first);
  }
  return merged;
}

}  // namespace bpe
