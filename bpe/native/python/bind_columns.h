// Python face of what works on columns and files: readers, normalizers, hashes, packing.
#pragma once

#include <pybind11/stl.h>

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

std::string_view chars(const View<uint8_t>& view) {
  return {reinterpret_cast<const char*>(view.data()), view.size()};
}

using Columns = std::pair<Buffer, Buffer>;

Columns columns_of(ByteStrings strings) {
  return {Buffer(std::move(strings.data)), Buffer(std::move(strings.offsets))};
}

std::optional<Columns> columns_of(std::optional<ByteStrings> strings) {
  return strings ? std::optional(columns_of(*std::move(strings))) : std::nullopt;
}

py::tuple split_lines_tuple(const py::buffer& data, int64_t place) {
  const View<uint8_t> view(data);
  Lines lines = unlocked([&] { return split_lines(chars(view), place); });
  return py::make_tuple(Buffer(std::move(lines.text.data)), Buffer(std::move(lines.text.offsets)),
                        Buffer(std::move(lines.places)));
}

py::tuple read_json_lines_tuple(const py::buffer& data, int64_t place, const py::bytes& text_field,
                                const py::bytes& id_field, bool id_required) {
  const View<uint8_t> view(data);
  if (view.size() > INT32_MAX) throw std::invalid_argument("more than 2^31 - 1 bytes of lines");
  const std::string_view text_name = text_field, id_name = id_field;
  JsonLines rows = unlocked(
      [&] { return read_json_lines(chars(view), place, text_name, id_name, id_required); });
  return py::make_tuple(Buffer(std::move(rows.text)), Buffer(std::move(rows.text_offsets)),
                        Buffer(std::move(rows.ids)), Buffer(std::move(rows.id_offsets)),
                        Buffer(std::move(rows.has_id)), Buffer(std::move(rows.places)),
                        Buffer(std::move(rows.undecided)));
}

std::optional<Columns> rank_order_columns(const py::buffer& data) {
  const View<uint8_t> view(data);
  return unlocked([&] { return columns_of(tokens_in_rank_order(chars(view))); });
}

std::optional<TokenizerLists> read_tokenizer_json(const py::buffer& data) {
  const View<uint8_t> view(data);
  std::vector<size_t> keys;
  return unlocked([&] { return TokenizerReader(view.begin(), view.end(), keys).read(); });
}

// What a step of a normalizer changes.
uint8_t changed_by(const std::string& step) {
  constexpr std::array<std::string_view, 6> names{"nfc",  "nfd",           "nfkc",
                                                  "nfkd", "strip-accents", "strip-nonspacing"};
  constexpr std::array<uint8_t, 6> changes{kNotNfc,  kNotNfd, kNotNfkc,
                                           kNotNfkd, kAccent, kNonspacing};
  return changes[from_name<size_t>(step, names, "step")];
}

Buffer changed_rows(const TextColumn& column, const std::string& step) {
  return unlocked([&] { return Buffer(rows_with(changed_by(step), column)); });
}

Columns lowercase_columns(const TextColumn& column) {
  return unlocked([&] { return columns_of(lowercase(column)); });
}

Columns strip_marks(const TextColumn& column, const std::string& step) {
  return unlocked([&] { return columns_of(strip(changed_by(step), column)); });
}

Buffer row_hashes(const TextColumn& column) {
  const Unlocked unlocked;
  std::vector<uint64_t> hashes(column.rows());
  for (size_t row = 0; row < column.rows(); ++row)
    hashes[row] = xxh64(column[row].data(), column[row].size());
  return Buffer(std::move(hashes));
}

Buffer best_fit_rows(const py::buffer& sizes, int64_t capacity) {
  const View<int64_t> view(sizes);
  return unlocked([&] { return Buffer(best_fit(span_of(view), capacity)); });
}

}  // namespace

inline void bind_columns(py::module_& module) {
  module.def("changed_rows", &changed_rows, py::arg("column"), py::arg("step"));
  module.def("lowercase", &lowercase_columns, py::arg("column"));
  module.def("strip_marks", &strip_marks, py::arg("column"), py::arg("step"));
  module.def("row_hashes", &row_hashes, py::arg("column"));
  module.def("best_fit", &best_fit_rows, py::arg("sizes"), py::arg("capacity"));
  module.def("split_lines", &split_lines_tuple, py::arg("data"), py::arg("place"));
  module.def("read_json_lines", &read_json_lines_tuple, py::arg("data"), py::arg("place"),
             py::arg("text_field"), py::arg("id_field"), py::arg("id_required"));
  module.def("tokens_in_rank_order", &rank_order_columns, py::arg("data"));
  py::class_<TokenizerLists>(module, "TokenizerLists")
      .def_property_readonly("head",
                             [](const TokenizerLists& lists) { return py::bytes(lists.head); })
      .def_property_readonly("merges",
                             [](const TokenizerLists& lists) { return Buffer(lists.merges); })
      .def("__len__", [](const TokenizerLists& lists) { return lists.count; })
      .def("names",
           [](const TokenizerLists& lists) {
             std::vector<py::str> names;
             for (uint32_t id = 0; id < lists.names.size(); ++id)
               if (lists.names.has(id)) {
                 const auto name = lists.names[id];
                 names.emplace_back(reinterpret_cast<const char*>(name.data()), name.size());
               }
             return names;
           })
      .def("find",
           [](const TokenizerLists& lists, const std::string& name) {
             const uint32_t id = lists.names.find(bytes_of(name));
             return id == Vocabulary::kNone ? std::nullopt : std::optional(id);
           })
      .def(
          "tokens",
          [](const TokenizerLists& lists, const std::vector<int64_t>& own) {
            return unlocked([&] { return columns_of(lists.tokens(own)); });
          },
          py::arg("own"));
  module.def("read_tokenizer_json", &read_tokenizer_json, py::arg("data"));
}

}  // namespace bpe
