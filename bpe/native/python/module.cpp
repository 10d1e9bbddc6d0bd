// The Python module bpe._native: a bind_* for each part of the core. The headers are compiled
// together, because pybind11 costs a compiler more than what they bind. The encoder and the counter
// are apart: next to each other, GCC 12 inlines other functions, and both are slower.
#include <pybind11/pybind11.h>

#include "python/bind_columns.h"
#include "python/bind_scanner.h"
#include "python/bind_trainer.h"
#include "python/view.h"
#include "table/buffer.h"
#include "text/text_column.h"

namespace py = pybind11;

namespace bpe {
void bind_counter(py::module_& module);
void bind_encoder(py::module_& module);
}  // namespace bpe

PYBIND11_MODULE(_native, module) {
  module.doc() = "The C++ core of bpe; its Python face is the package around it.";
  py::class_<bpe::Buffer>(module, "Buffer", py::buffer_protocol())
      .def_buffer([](const bpe::Buffer& buffer) {
        return py::buffer_info(const_cast<uint8_t*>(buffer.data()), sizeof(uint8_t),
                               py::format_descriptor<uint8_t>::format(), 1, {buffer.size()},
                               {sizeof(uint8_t)}, !buffer.writable());
      })
      .def("__len__", &bpe::Buffer::size);
  py::class_<bpe::TextColumn>(module, "TextColumn")
      .def(py::init([](const py::buffer& data, const py::buffer& offsets, int offset_width,
                       size_t first, size_t rows) {
             using Views = std::pair<bpe::View<uint8_t>, bpe::View<uint8_t>>;
             const auto lent = std::make_shared<Views>(data, offsets);
             return bpe::TextColumn(lent->first.span(), lent->second.span(), offset_width, first,
                                    rows, lent);
           }),
           py::arg("data"), py::arg("offsets"), py::arg("offset_width"), py::arg("first"),
           py::arg("rows"))
      .def("__len__", &bpe::TextColumn::rows);
  bpe::bind_scanner(module);
  bpe::bind_encoder(module);
  bpe::bind_counter(module);
  bpe::bind_trainer(module);
  bpe::bind_columns(module);
}
