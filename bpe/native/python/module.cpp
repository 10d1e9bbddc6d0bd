// The Python module bpe._native: one bind_*.cpp for each part of the core.
#include <pybind11/pybind11.h>

#include "python/bindings.h"
#include "python/view.h"
#include "table/buffer.h"
#include "text/text_column.h"

PYBIND11_MODULE(_native, module) {
  module.doc() = "The C++ core of bpe; its Python face is the package around it.";
  py::class_<bpe::Buffer>(module, "Buffer", py::buffer_protocol())
      .def_buffer([](const bpe::Buffer& buffer) {
        return py::buffer_info(const_cast<uint8_t*>(buffer.data()), sizeof(uint8_t),
                               py::format_descriptor<uint8_t>::format(), 1, {buffer.size()},
                               {sizeof(uint8_t)}, !buffer.writable());
      })
      .def("__len__", &bpe::Buffer::size);
  py::class_<bpe::TextColumn>(module, "_Column");  // what the parts of the core take
  py::class_<bpe::LentColumn, bpe::TextColumn>(module, "TextColumn")
      .def(py::init<const py::buffer&, const py::buffer&, int, size_t, size_t>(), py::arg("data"),
           py::arg("offsets"), py::arg("offset_width"), py::arg("first"), py::arg("rows"))
      .def("__len__", &bpe::TextColumn::rows);
  bpe::bind_scanner(module);
  bpe::bind_encoder(module);
  bpe::bind_counter(module);
  bpe::bind_trainer(module);
  bpe::bind_columns(module);
}
