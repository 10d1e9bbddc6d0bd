// Python face of the counter.
#include "bindings.h"

namespace bpe {

void bind_counter(py::module_&) {}

}  // namespace bpe
