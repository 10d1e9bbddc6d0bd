// Python face of the normalizers.
#include <pybind11/stl.h>

#include <array>
#include <stdexcept>
#include <string>

#include "python/bindings.h"
#include "python/unlocked.h"
#include "python/view.h"
#include "table/buffer.h"
#include "text/normalizer.h"

namespace bpe {

namespace {

// What a step changes.
constexpr std::array<std::pair<std::string_view, uint8_t>, 6> kChanges = {{
    {"nfc", kNotNfc},
    {"nfd", kNotNfd},
    {"nfkc", kNotNfkc},
    {"nfkd", kNotNfkd},
    {"strip-accents", kAccent},
    {"strip-nonspacing", kNonspacing},
}};

uint8_t changed_by(const std::string& step) {
  for (const auto& [name, properties] : kChanges)
    if (name == step) return properties;
  throw std::invalid_argument("unknown step '" + step + "'");
}

std::pair<Buffer, Buffer> to_buffers(Texts texts) {
  return {Buffer(std::move(texts.data)), Buffer(std::move(texts.offsets))};
}

}  // namespace

void bind_normalizer(py::module_& module) {
  module.def(
      "changed_rows",
      [](const TextColumn& column, const std::string& step) {
        const uint8_t properties = changed_by(step);
        const Unlocked unlocked;
        return Buffer(rows_with(properties, column));
      },
      py::arg("column"), py::arg("step"));
  module.def(
      "lowercase",
      [](const TextColumn& column) {
        const Unlocked unlocked;
        return to_buffers(lowercase(column));
      },
      py::arg("column"));
  module.def(
      "strip_marks",
      [](const TextColumn& column, const std::string& step) {
        const uint8_t properties = changed_by(step);
        const Unlocked unlocked;
        return to_buffers(strip(properties, column));
      },
      py::arg("column"), py::arg("step"));
}

}  // namespace bpe
