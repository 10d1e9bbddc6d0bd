// Python face of the scanner.
#include "bindings.h"

namespace bpe {

void bind_scanner(py::module_&) {}

}  // namespace bpe
