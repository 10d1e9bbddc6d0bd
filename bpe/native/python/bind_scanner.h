// Python face of the scanner.
#pragma once

#include "python/pretokenizer.h"
#include "python/unlocked.h"
#include "python/view.h"
#include "table/buffer.h"
#include "text/scanner.h"
#include "text/text_column.h"

namespace bpe {

namespace {

Buffer scan_text(const PretokenizerArgument& pretokenizer, Bytes text) {
  const Pretokenizer chosen = pretokenizer_of(pretokenizer);
  require_pattern(chosen);
  std::vector<int64_t> spans;
  each_pretoken(chosen, text, [&](const uint8_t* begin, const uint8_t* end) {
    spans.insert(spans.end(), {begin - text.data(), end - text.data()});
  });
  return Buffer(std::move(spans));
}

template <class Pattern>
py::tuple described() {
  return py::make_tuple(Pattern::kName, Pattern::kPattern, Pattern::kDropsText);
}

Buffer malformed_rows(const TextColumn& column) {
  std::vector<int64_t> rows;
  for (size_t row = 0; row < column.rows(); ++row)
    if (!is_utf8(column[row])) rows.push_back(static_cast<int64_t>(row));
  return Buffer(std::move(rows));
}

}  // namespace

inline void bind_scanner(py::module_& module) {
  module.attr("UNICODE_VERSION") = kUnicodeVersion;
  // (name, regular expression, whether text that does not match is lost) of each.
  module.attr("PRETOKENIZERS") = []<size_t... I>(std::index_sequence<I...>) {
    return py::make_tuple(described<std::tuple_element_t<I, Patterns>>()...);
  }(std::make_index_sequence<std::tuple_size_v<Patterns>>{});
  py::class_<PatternTable, std::shared_ptr<PatternTable>>(module, "PatternTable")
      .def(py::init<Bytes, std::span<const uint32_t>, Bytes, Bytes>(), py::arg("symbols"),
           py::arg("steps"), py::arg("roles"), py::arg("few"));
  module.def("scan", &scan_text, py::arg("pretokenizer"), py::arg("data"), Release());
  module.def("malformed_rows", &malformed_rows, py::arg("column"), Release());
}

}  // namespace bpe
