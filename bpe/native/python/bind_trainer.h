// Python face of the trainer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "python/unlocked.h"
#include "python/view.h"
#include "table/buffer.h"
#include "table/names.h"
#include "train/trainer.h"

namespace bpe {

namespace {

std::unique_ptr<Trainer> make_trainer(
    const std::vector<std::string>& alphabet, const std::string& ties,
    const std::string& pair_counts, bool by_score, const std::string& prefix, size_t max_tokens,
    int64_t min_frequency, const std::vector<std::string>& forbidden,
    const std::vector<std::pair<std::string, int64_t>>& whole_words, int64_t pruned,
    std::span<const uint32_t> known) {
  TrainerOptions options;
  options.ties = tie_rule(ties);
  options.pair_counts = bpe::pair_counts(pair_counts);
  options.by_score = by_score;
  options.prefix = prefix;
  options.max_tokens = max_tokens;
  options.min_frequency = min_frequency;
  options.forbidden.insert(forbidden.begin(), forbidden.end());
  options.pruned = pruned;
  for (const auto& [token, count] : whole_words) options.whole_words.push_back({token, count});
  if (known.size() % 3 != 0) throw std::invalid_argument("known merges are no triples");
  for (size_t i = 0; i < known.size(); i += 3)
    options.known.push_back({{known[i], known[i + 1]}, known[i + 2]});
  return std::make_unique<Trainer>(alphabet, std::move(options));
}

constexpr uint32_t kNoSymbol = ~uint32_t{0};

// Words of ids; symbol_of_id[id] is the symbol of an id, or kNoSymbol, with which nothing
// merges: a word is added as the words between these.
void add_words(Trainer& trainer, std::span<const uint32_t> ids, std::span<const int64_t> offsets,
               std::span<const int64_t> counts, std::span<const uint32_t> symbol_of_id) {
  if (offsets.size() != counts.size() + 1) throw std::invalid_argument("need words + 1 offsets");
  for (size_t word = 0; word < counts.size(); ++word)
    if (counts[word] < 0 || offsets[word] < 0 || offsets[word + 1] < offsets[word] ||
        static_cast<size_t>(offsets[word + 1]) > ids.size())
      throw std::invalid_argument("word " + std::to_string(word) +
                                  " lies outside the ids, or has a negative count");
  for (const uint32_t id : ids)
    if (id >= symbol_of_id.size() ||
        (symbol_of_id[id] >= trainer.tokens().size() && symbol_of_id[id] != kNoSymbol))
      throw std::invalid_argument("no such symbol");
  for (size_t word = 0; word < counts.size(); ++word) {
    auto begin = static_cast<size_t>(offsets[word]);
    const auto end = static_cast<size_t>(offsets[word + 1]);
    while (begin < end) {
      size_t length = 0;
      while (begin + length < end && symbol_of_id[ids[begin + length]] != kNoSymbol) ++length;
      if (length > 0)
        trainer.add_word(length, counts[word],
                         [&](size_t i) { return symbol_of_id[ids[begin + i]]; });
      begin += length;
      if (begin < end) trainer.add_apart(counts[word]);
      begin += begin < end;
    }
  }
}

}  // namespace

inline void bind_trainer(py::module_& module) {
  py::dict ties;
  for (const TieRule& rule : kTieRules) ties[py::cast(rule.name)] = rule.words;
  module.attr("TIES") = ties;
  module.attr("PAIR_COUNTS") = py::cast(kPairCounts);
  py::class_<Trainer>(module, "Trainer")
      .def(py::init(&make_trainer), py::kw_only(), py::arg("alphabet"), py::arg("ties"),
           py::arg("pair_counts") = kPairCounts.front(), py::arg("by_score") = false,
           py::arg("prefix") = py::bytes(), py::arg("max_tokens"), py::arg("min_frequency"),
           py::arg("forbidden"), py::arg("whole_words") = py::list(), py::arg("pruned") = 0,
           py::arg("known") = py::none())
      .def("reserve", &Trainer::reserve, py::kw_only(), py::arg("symbols"), py::arg("words"))
      .def("add_words", &add_words, py::kw_only(), py::arg("ids"), py::arg("offsets"),
           py::arg("counts"), py::arg("symbol_of_id"), Release())
      .def("peek",
           [](Trainer& t) -> py::object {
             const auto next = unlocked([&] { return t.peek(); });
             if (!next) return py::none();
             const auto [left, right, count] = *next;
             return py::make_tuple(py::bytes(t.tokens()[left]), py::bytes(t.tokens()[right]),
                                   count);
           })
      .def("step", &Trainer::step, py::arg("merges"), Release())
      .def("choose", &Trainer::choose, Release())
      .def("merge", &Trainer::merge, py::arg("left"), py::arg("right"), Release())
      .def("finish", &Trainer::finish)
      .def_property_readonly("merge_count", [](const Trainer& t) { return t.merges().size(); })
      .def_property_readonly("initial_tokens", &Trainer::initial_tokens)
      .def_property_readonly("tokens_now", &Trainer::tokens_left)
      .def_property_readonly("vocabulary_full", &Trainer::vocabulary_full)
      .def_property_readonly("first_affected", &Trainer::first_affected)
      .def("tied", [](const Trainer& t) { return Buffer(t.tied()); })
      .def("repeated", [](const Trainer& t) { return Buffer(t.repeated()); })
      .def("whole_tokens",
           [](const Trainer& t) {
             return list_of(t.whole_tokens(), [](const WholeToken& whole) {
               return py::make_tuple(whole.token, whole.count, whole.merges_before);
             });
           })
      .def("merges",
           [](const Trainer& t) {
             return list_of(t.merges(), [](const Merge& merge) {
               return py::make_tuple(merge.pair.left, merge.pair.right, merge.token, merge.count,
                                     merge.tokens_left);
             });
           })
      .def("tokens", [](const Trainer& t) {
        return list_of(t.tokens(), [](const std::string& token) { return py::bytes(token); });
      });
}

}  // namespace bpe
