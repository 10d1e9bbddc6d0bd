// Python face of the scanner.
#include <pybind11/stl.h>

#include "python/bindings.h"
#include "python/view.h"
#include "table/buffer.h"
#include "text/scanner.h"
#include "text/text_column.h"

namespace bpe {

namespace {

template <Scheme S, class Block>
std::vector<int64_t> spans_of(const View<uint8_t>& text) {
  std::vector<int64_t> spans;
  Scanner<S, Block> scanner(text.begin(), text.end());
  const uint8_t *begin, *end;
  while (scanner.next(begin, end)) {
    spans.push_back(begin - text.begin());
    spans.push_back(end - text.begin());
  }
  return spans;
}

Buffer scan(const std::string& scheme, const py::buffer& data, bool portable) {
  const Scheme chosen = scheme_from_name(scheme);
  const View<uint8_t> text(data);
  py::gil_scoped_release release;
  return with_scheme(chosen, [&](auto constant) {
    constexpr Scheme kScheme = decltype(constant)::value;
    return Buffer(portable ? spans_of<kScheme, PortableBlock>(text)
                           : spans_of<kScheme, AsciiBlock>(text));
  });
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
  module.attr("SCHEMES") = py::tuple(py::cast(kSchemeNames));
  module.def("scan", &scan, py::arg("scheme"), py::arg("data"), py::arg("portable") = false);
  module.def("malformed_rows", &malformed_rows, py::arg("column"));
}

}  // namespace bpe
