// Python face of the trainer.
#pragma once

#include <pybind11/stl.h>

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

std::unique_ptr<Trainer> make_trainer(const std::vector<py::bytes>& alphabet,
                                      const std::string& ties, const std::string& pair_counts,
                                      bool by_score, const py::bytes& prefix, size_t max_tokens,
                                      int64_t min_frequency,
                                      const std::vector<py::bytes>& forbidden,
                                      const std::vector<std::pair<py::bytes, int64_t>>& whole_words,
                                      int64_t pruned, const std::optional<py::buffer>& known) {
  TrainerOptions options;
  options.ties = tie_rule(ties);
  options.pair_counts = bpe::pair_counts(pair_counts);
  options.by_score = by_score;
  options.prefix = prefix;
  options.max_tokens = max_tokens;
  options.min_frequency = min_frequency;
  options.forbidden.assign(forbidden.begin(), forbidden.end());
  for (const auto& [token, count] : whole_words) options.whole_words.push_back({token, count});
  options.pruned = pruned;
  if (known) {
    const View<uint32_t> triples(*known);
    if (triples.size() % 3 != 0) throw std::invalid_argument("known merges are no triples");
    for (size_t i = 0; i < triples.size(); i += 3)
      options.known.push_back({{triples[i], triples[i + 1]}, triples[i + 2]});
  }
  return std::make_unique<Trainer>(std::vector<std::string>(alphabet.begin(), alphabet.end()),
                                   std::move(options));
}

void check_counts(const TextColumn& words, const View<int64_t>& counts) {
  if (words.rows() != counts.size()) throw std::invalid_argument("need a count for each word");
  for (size_t word = 0; word < words.rows(); ++word)
    if (counts[word] < 0)
      throw std::invalid_argument("word " + std::to_string(word) + " has a negative count");
}

// Words of bytes; symbol_of_byte[b] is the symbol of byte b.
void add_words(Trainer& trainer, const TextColumn& words, const py::buffer& counts_object,
               const py::buffer& symbols_object) {
  const View<uint8_t> symbol_of_byte(symbols_object);
  const View<int64_t> counts(counts_object);
  if (symbol_of_byte.size() != 256) throw std::invalid_argument("need a symbol for each byte");
  for (const uint8_t symbol : symbol_of_byte)
    if (symbol >= trainer.tokens().size()) throw std::invalid_argument("no such symbol");
  const Unlocked unlocked;
  check_counts(words, counts);
  trainer.reserve(words.bytes(), words.rows());
  for (size_t word = 0; word < words.rows(); ++word) {
    const std::span<const uint8_t> bytes = words[word];
    trainer.add_word(bytes.size(), counts[word],
                     [&](size_t i) { return uint32_t{symbol_of_byte[bytes[i]]}; });
  }
}

// Words of token ids; symbol_of_id[id] is the symbol of a token.
void add_token_words(Trainer& trainer, const py::buffer& ids_object,
                     const py::buffer& offsets_object, const py::buffer& counts_object,
                     const py::buffer& symbols_object) {
  const View<uint32_t> ids(ids_object), symbol_of_id(symbols_object);
  const View<int64_t> offsets(offsets_object), counts(counts_object);
  const Unlocked unlocked;
  if (offsets.size() != counts.size() + 1) throw std::invalid_argument("need words + 1 offsets");
  for (size_t word = 0; word < counts.size(); ++word)
    if (counts[word] < 0 || offsets[word] < 0 || offsets[word + 1] < offsets[word] ||
        static_cast<size_t>(offsets[word + 1]) > ids.size())
      throw std::invalid_argument("word " + std::to_string(word) +
                                  " lies outside the ids, or has a negative count");
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] >= symbol_of_id.size() || symbol_of_id[ids[i]] >= trainer.tokens().size())
      throw std::invalid_argument("no such symbol");
  for (size_t word = 0; word < counts.size(); ++word) {
    const auto begin = static_cast<size_t>(offsets[word]);
    trainer.add_word(static_cast<size_t>(offsets[word + 1]) - begin, counts[word],
                     [&](size_t i) { return symbol_of_id[ids[begin + i]]; });
  }
}

py::object peek(Trainer& trainer) {
  const std::optional<Merge> next = unlocked([&] { return trainer.peek(); });
  if (!next) return py::none();
  const std::vector<std::string>& tokens = trainer.tokens();
  return py::make_tuple(py::bytes(tokens[next->pair.left]), py::bytes(tokens[next->pair.right]),
                        next->count);
}

py::list whole_tokens(const Trainer& trainer) {
  py::list rows;
  for (const WholeToken& whole : trainer.whole_tokens())
    rows.append(py::make_tuple(whole.token, whole.count, whole.merges_before));
  return rows;
}

std::optional<std::pair<uint32_t, uint32_t>> choose(Trainer& trainer) {
  const std::optional<SymbolPair> pair = trainer.choose();
  return pair ? std::optional(std::pair(pair->left, pair->right)) : std::nullopt;
}

py::list merges(const Trainer& trainer) {
  py::list rows;
  for (const Merge& merge : trainer.merges())
    rows.append(py::make_tuple(merge.pair.left, merge.pair.right, merge.token, merge.count,
                               merge.tokens_left));
  return rows;
}

}  // namespace

inline void bind_trainer(py::module_& module) {
  py::dict ties;
  for (const TieRule& rule : kTieRules) ties[py::cast(rule.name)] = rule.words;
  module.attr("TIES") = ties;
  module.attr("PAIR_COUNTS") = py::cast(kPairCounts);
  py::class_<Trainer>(module, "Trainer")
      .def(py::init(&make_trainer), py::kw_only(), py::arg("alphabet"), py::arg("ties"),
           py::arg("pair_counts") = std::string(kPairCounts.front()), py::arg("by_score") = false,
           py::arg("prefix") = py::bytes(), py::arg("max_tokens"), py::arg("min_frequency"),
           py::arg("forbidden"),
           py::arg("whole_words") = std::vector<std::pair<py::bytes, int64_t>>(),
           py::arg("pruned") = 0, py::arg("known") = py::none())
      .def("add_words", &add_words, py::arg("words"), py::kw_only(), py::arg("counts"),
           py::arg("symbol_of_byte"))
      .def(
          "add_apart", [](Trainer& t, uint64_t tokens) { t.add_apart(tokens); }, py::arg("tokens"))
      .def("add_token_words", &add_token_words, py::kw_only(), py::arg("ids"), py::arg("offsets"),
           py::arg("counts"), py::arg("symbol_of_id"))
      .def("peek", &peek)
      .def("step", &Trainer::step, py::arg("merges"), py::call_guard<Unlocked>())
      .def("choose", &choose, py::call_guard<Unlocked>())
      .def(
          "merge",
          [](Trainer& trainer, uint32_t left, uint32_t right) {
            if (std::max(left, right) >= trainer.tokens().size())
              throw std::invalid_argument("no such symbol");
            trainer.merge(SymbolPair{left, right});
          },
          py::arg("left"), py::arg("right"), py::call_guard<Unlocked>())
      .def("finish", &Trainer::finish)
      .def_property_readonly("merge_count", [](const Trainer& t) { return t.merges().size(); })
      .def_property_readonly("initial_tokens", &Trainer::initial_tokens)
      .def_property_readonly("tokens_now", &Trainer::tokens_left)
      .def_property_readonly("vocabulary_full", &Trainer::vocabulary_full)
      .def_property_readonly("first_affected", &Trainer::first_affected)
      .def("tied", [](const Trainer& t) { return Buffer(t.tied()); })
      .def("repeated", [](const Trainer& t) { return Buffer(t.repeated()); })
      .def("whole_tokens", &whole_tokens)
      .def("merges", &merges)
      .def("tokens", [](const Trainer& t) {
        std::vector<py::bytes> tokens;
        for (const std::string& token : t.tokens()) tokens.emplace_back(token);
        return tokens;
      });
}

}  // namespace bpe
