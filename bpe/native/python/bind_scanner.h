// Python face of the scanner.
#pragma once

#include <pybind11/stl.h>

#include "python/pretokenizer.h"
#include "python/unlocked.h"
#include "python/view.h"
#include "table/buffer.h"
#include "text/scanner.h"
#include "text/text_column.h"

namespace bpe {

namespace {

Buffer scan_text(const PretokenizerArgument& pretokenizer, const py::buffer& data) {
  const Pretokenizer chosen = pretokenizer_of(pretokenizer);
  require_pattern(chosen);
  const View<uint8_t> text(data);
  const Unlocked unlocked;
  std::vector<int64_t> spans;
  const auto add = [&](const uint8_t* begin, const uint8_t* end) {
    spans.insert(spans.end(), {begin - text.begin(), end - text.begin()});
  };
  const auto cut = [&](const uint8_t* from, const uint8_t* to) {
    bpe::scan(chosen.patterns, from, to, [&](auto& scanner) {
      for (const uint8_t *begin, *end; scanner.next(begin, end);) add(begin, end);
    });
  };
  chosen.never_split.cut(text.begin(), text.end(), cut, add);
  return Buffer(std::move(spans));
}

std::shared_ptr<PatternTable> make_table(const py::buffer& symbols, const py::buffer& steps,
                                         const py::buffer& roles, const py::buffer& few) {
  const View<uint8_t> symbol_view(symbols), role_view(roles), few_view(few);
  const View<uint32_t> step_view(steps);
  return std::make_shared<PatternTable>(span_of(symbol_view), span_of(step_view),
                                        span_of(role_view), span_of(few_view));
}

template <class Pattern>
py::tuple described() {
  return py::make_tuple(Pattern::kName, Pattern::kPattern, Pattern::kDropsText);
}

Buffer malformed_rows(const TextColumn& column) {
  const Unlocked unlocked;
  std::vector<int64_t> rows;
  for (size_t row = 0; row < column.rows(); ++row) {
    const std::span<const uint8_t> text = column[row];
    if (!is_utf8(text.data(), text.data() + text.size())) rows.push_back(static_cast<int64_t>(row));
  }
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
      .def(py::init(&make_table), py::arg("symbols"), py::arg("steps"), py::arg("roles"),
           py::arg("few"));
  module.def("scan", &scan_text, py::arg("pretokenizer"), py::arg("data"));
  module.def("malformed_rows", &malformed_rows, py::arg("column"));
}

}  // namespace bpe
