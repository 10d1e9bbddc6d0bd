// Python face of packing.
#include "pack/best_fit.h"
#include "python/bindings.h"
#include "python/unlocked.h"
#include "python/view.h"
#include "table/buffer.h"

namespace bpe {

void bind_pack(py::module_& module) {
  module.def(
      "best_fit",
      [](const py::buffer& sizes, int64_t capacity) {
        const View<int64_t> view(sizes);
        const Unlocked unlocked;
        return Buffer(best_fit(span_of(view), capacity));
      },
      py::arg("sizes"), py::arg("capacity"));
}

}  // namespace bpe
