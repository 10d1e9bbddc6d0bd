// Python face of the encoder.
#include "bindings.h"

namespace bpe {

void bind_encoder(py::module_&) {}

}  // namespace bpe
