// Python face of what works on columns and files: readers, normalizers, hashes, packing.
#pragma once

#include "corpus/json_lines.h"
#include "corpus/lines.h"
#include "encode/model.h"
#include "json/tokenizer.h"
#include "pack/best_fit.h"
#include "python/unlocked.h"
#include "python/view.h"
#include "table/buffer.h"
#include "table/names.h"
#include "table/xxh64.h"
#include "text/normalizer.h"
#include "text/rank_lines.h"

namespace bpe {

namespace {

// What a step of a normalizer changes.
uint8_t changed_by(const std::string& step) {
  constexpr std::array<std::string_view, 6> names{"nfc",  "nfd",           "nfkc",
                                                  "nfkd", "strip-accents", "strip-nonspacing"};
  constexpr std::array<uint8_t, 6> changes{kNotNfc,  kNotNfd, kNotNfkc,
                                           kNotNfkd, kAccent, kNonspacing};
  return changes[from_name<size_t>(step, names, "step")];
}

}  // namespace

inline void bind_columns(py::module_& module) {
  module.def(
      "changed_rows",
      [](const TextColumn& column, const std::string& step) {
        return Buffer(rows_with(changed_by(step), column));
      },
      py::arg("column"), py::arg("step"), Release());
  module.def("lowercase", &lowercase, py::arg("column"), Release());
  module.def(
      "strip_marks",
      [](const TextColumn& column, const std::string& step) {
        return strip(changed_by(step), column);
      },
      py::arg("column"), py::arg("step"), Release());
  module.def(
      "row_hashes",
      [](const TextColumn& column) {
        std::vector<uint64_t> hashes(column.rows());
        for (size_t row = 0; row < column.rows(); ++row) hashes[row] = xxh64(column[row]);
        return Buffer(std::move(hashes));
      },
      py::arg("column"), Release());
  module.def(
      "best_fit",
      [](std::span<const int64_t> sizes, int64_t capacity) {
        return Buffer(best_fit(sizes, capacity));
      },
      py::arg("sizes"), py::arg("capacity"), Release());
  module.def(
      "split_lines",
      [](Bytes data, int64_t place) {
        Lines lines = split_lines(data, place);
        return std::tuple(Buffer(std::move(lines.text.data)), Buffer(std::move(lines.text.offsets)),
                          Buffer(std::move(lines.places)));
      },
      py::arg("data"), py::arg("place"), Release());
  module.def(
      "read_json_lines",
      [](Bytes data, int64_t place, const std::string& text_field, const std::string& id_field,
         bool id_required) {
        JsonLines rows = read_json_lines(data, place, text_field, id_field, id_required);
        return std::tuple(Buffer(std::move(rows.text.data)), Buffer(std::move(rows.text.offsets)),
                          Buffer(std::move(rows.ids)), Buffer(std::move(rows.id_offsets)),
                          Buffer(std::move(rows.has_id)), Buffer(std::move(rows.places)),
                          Buffer(std::move(rows.undecided)));
      },
      py::arg("data"), py::arg("place"), py::arg("text_field"), py::arg("id_field"),
      py::arg("id_required"), Release());
  module.def("tokens_in_rank_order", &tokens_in_rank_order, py::arg("data"), Release());
  module.def(
      "read_tokenizer_json",
      [](Bytes data) {
        std::vector<size_t> keys;
        return TokenizerReader(data, keys).read();
      },
      py::arg("data"), Release());
  py::class_<TokenizerLists>(module, "TokenizerLists")
      .def_property_readonly("head",
                             [](const TokenizerLists& lists) { return py::bytes(lists.head); })
      .def_property_readonly("merges",
                             [](const TokenizerLists& lists) { return Buffer(lists.merges); })
      .def("__len__", [](const TokenizerLists& lists) { return lists.names.count(); })
      .def("names",
           [](const TokenizerLists& lists) {
             std::vector<py::str> names;
             for (uint32_t id = 0; id < lists.names.size(); ++id)
               if (lists.names.has(id)) names.emplace_back(chars_of(lists.names[id]));
             return names;
           })
      .def("find",
           [](const TokenizerLists& lists, const std::string& name) {
             const uint32_t id = lists.names.find(bytes_of(name));
             return id == Vocabulary::kNone ? std::nullopt : std::optional(id);
           })
      .def("tokens", &TokenizerLists::tokens, py::arg("own"), Release());
}

}  // namespace bpe
