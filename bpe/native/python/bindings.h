// Each part of the core adds its classes and functions to the module here.
#pragma once

#include <pybind11/pybind11.h>

namespace py = pybind11;

namespace bpe {

void bind_scanner(py::module_& module);
void bind_counter(py::module_& module);
void bind_trainer(py::module_& module);
void bind_encoder(py::module_& module);
void bind_columns(py::module_& module);

}  // namespace bpe
