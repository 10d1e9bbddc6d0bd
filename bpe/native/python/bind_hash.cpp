// Hashes of the rows of a column, which other programs can take as well.
#include <pybind11/pybind11.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "python/bindings.h"
#include "python/unlocked.h"
#include "python/view.h"
#include "table/buffer.h"
#include "table/xxh64.h"

namespace bpe {

namespace {

Buffer row_hashes(const TextColumn& column) {
  const Unlocked unlocked;
  std::vector<uint64_t> hashes(column.rows());
  for (size_t row = 0; row < column.rows(); ++row) {
    const std::span<const uint8_t> text = column[row];
    hashes[row] = xxh64(text.data(), text.size());
  }
  return Buffer(std::move(hashes));
}

}  // namespace

void bind_hash(py::module_& module) { module.def("row_hashes", &row_hashes, py::arg("column")); }

}  // namespace bpe
