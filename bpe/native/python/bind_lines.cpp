// Python face of the line readers.
#include "python/bindings.h"
#include "python/unlocked.h"
#include "python/view.h"
#include "table/buffer.h"
#include "text/lines.h"
#include "text/rank_lines.h"

namespace bpe {

namespace {

std::string_view chars(const View<uint8_t>& view) {
  return {reinterpret_cast<const char*>(view.data()), view.size()};
}

py::tuple split_lines_tuple(const py::buffer& data, int64_t place) {
  const View<uint8_t> view(data);
  Lines lines = unlocked([&] { return split_lines(chars(view), place); });
  return py::make_tuple(Buffer(std::move(lines.text)), Buffer(std::move(lines.offsets)),
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

py::object tokens_in_rank_order_tuple(const py::buffer& data) {
  const View<uint8_t> view(data);
  auto tokens = unlocked([&] { return tokens_in_rank_order(chars(view)); });
  if (!tokens) return py::none();
  return py::make_tuple(Buffer(std::move(tokens->data)), Buffer(std::move(tokens->offsets)));
}

}  // namespace

void bind_lines(py::module_& module) {
  module.def("split_lines", &split_lines_tuple, py::arg("data"), py::arg("place"));
  module.def("read_json_lines", &read_json_lines_tuple, py::arg("data"), py::arg("place"),
             py::arg("text_field"), py::arg("id_field"), py::arg("id_required"));
  module.def("tokens_in_rank_order", &tokens_in_rank_order_tuple, py::arg("data"));
}

}  // namespace bpe
