// Python face of the scanner.
#include <pybind11/stl.h>

#include "python/bindings.h"
#include "python/pretokenizer.h"
#include "python/unlocked.h"
#include "python/view.h"
#include "table/buffer.h"
#include "text/scanner.h"
#include "text/text_column.h"

namespace bpe {

namespace {

template <class Scanner>
std::vector<int64_t> spans_of(Scanner scanner, const View<uint8_t>& text) {
  std::vector<int64_t> spans;
  const uint8_t *begin, *end;
  while (scanner.next(begin, end)) {
    spans.push_back(begin - text.begin());
    spans.push_back(end - text.begin());
  }
  return spans;
}

Buffer scan(const PretokenizerArgument& pretokenizer, const py::buffer& data, bool portable) {
  const std::optional<Pretokenizer> chosen = pretokenizer_of(pretokenizer);
  if (!chosen) throw std::invalid_argument("name a pre-tokenizer");
  const View<uint8_t> text(data);
  const Unlocked unlocked;
  if (const auto* name = std::get_if<NamedPattern>(&chosen->front()); name && portable)
    return with_pattern(*name, [&](auto pattern) {
      using Portable = Scanner<typename decltype(pattern)::type, PortableBlock>;
      return Buffer(spans_of(Portable(text.begin(), text.end()), text));
    });
  return with_scanner(*chosen, [&](const auto& scanner_of) {
    return Buffer(spans_of(scanner_of(text.begin(), text.end()), text));
  });
}

std::shared_ptr<PatternTable> make_table(const py::buffer& symbols, const py::buffer& steps,
                                         size_t width) {
  const View<uint8_t> symbol_view(symbols);
  const View<uint32_t> step_view(steps);
  return std::make_shared<PatternTable>(span_of(symbol_view), span_of(step_view), width);
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

void bind_scanner(py::module_& module) {
  module.attr("UNICODE_VERSION") = kUnicodeVersion;
  // (name, regular expression, whether text that does not match is lost) of each.
  module.attr("PRETOKENIZERS") = []<size_t... I>(std::index_sequence<I...>) {
    return py::make_tuple(described<std::tuple_element_t<I, Patterns>>()...);
  }(std::make_index_sequence<std::tuple_size_v<Patterns>>{});
  py::class_<PatternTable, std::shared_ptr<PatternTable>>(module, "PatternTable")
      .def(py::init(&make_table), py::arg("symbols"), py::arg("steps"), py::arg("width"));
  module.def("scan", &scan, py::arg("pretokenizer"), py::arg("data"), py::arg("portable") = false);
  module.def("malformed_rows", &malformed_rows, py::arg("column"));
}

}  // namespace bpe
