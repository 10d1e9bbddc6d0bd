// Python face of the trainer.
#include "bindings.h"

namespace bpe {

void bind_trainer(py::module_&) {}

}  // namespace bpe
