// Python face of the scanner.
#include <pybind11/stl.h>

#include "python/bindings.h"
#include "python/view.h"
#include "table/buffer.h"
#include "text/scanner.h"
#include "text/text_column.h"

namespace bpe {

namespace {

template <class Pattern, class Block>
std::vector<int64_t> spans_of(const View<uint8_t>& text) {
  std::vector<int64_t> spans;
  Scanner<Pattern, Block> scanner(text.begin(), text.end());
  const uint8_t *begin, *end;
  while (scanner.next(begin, end)) {
    spans.push_back(begin - text.begin());
    spans.push_back(end - text.begin());
  }
  return spans;
}

Buffer scan(const std::string& pretokenizer, const py::buffer& data, bool portable) {
  const Pretokenizer chosen = pretokenizer_from_name(pretokenizer);
  const View<uint8_t> text(data);
  py::gil_scoped_release release;
  return with_pattern(chosen, [&](auto pattern) {
    using Pattern = typename decltype(pattern)::type;
    return Buffer(portable ? spans_of<Pattern, PortableBlock>(text)
                           : spans_of<Pattern, AsciiBlock>(text));
  });
}

template <class Pattern>
py::tuple described() {
  return py::make_tuple(Pattern::kName, Pattern::kPattern, Pattern::kDropsText);
}

Buffer malformed_rows(const TextColumn& column) {
  py::gil_scoped_release release;
  std::vector<int64_t> rows;
  for (size_t row = 0; row < column.rows(); ++row) {
    const std::span<const uint8_t> text = column[row];
    if (!is_utf8(text.data(), text.data() + text.size())) rows.push_back(static_cast<int64_t>(row));
  }
  return Buffer(std::move(rows));
}

}  // namespace

void bind_scanner(py::module_& module) {
  module.attr("UNICODE_VERSION") = kUnicodeVersion;
  // (name, regular expression, whether text that does not match is lost) of each.
  module.attr("PRETOKENIZERS") = []<size_t... I>(std::index_sequence<I...>) {
    return py::make_tuple(described<std::tuple_element_t<I, Patterns>>()...);
  }(std::make_index_sequence<std::tuple_size_v<Patterns>>{});
  module.def("scan", &scan, py::arg("pretokenizer"), py::arg("data"), py::arg("portable") = false);
  module.def("malformed_rows", &malformed_rows, py::arg("column"));
}

}  // namespace bpe
