// Python face of the trainer.
#include <pybind11/stl.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "buffer.h"
#include "trainer.h"

namespace bpe {

namespace {

Ties ties_from_name(const std::string& name) {
  if (name == "bytes-min") return Ties::bytes_min;
  if (name == "bytes-max") return Ties::bytes_max;
  if (name == "id-min") return Ties::id_min;
  if (name == "huggingface") return Ties::huggingface;
  if (name == "first-seen") return Ties::first_seen;
  throw std::invalid_argument("unknown tie rule '" + name + "'");
}

Trainer make_trainer(const std::vector<py::bytes>& alphabet, const std::string& ties,
                     size_t max_tokens, int64_t min_frequency,
                     const std::vector<py::bytes>& forbidden) {
  TrainerOptions options{ties_from_name(ties), max_tokens, min_frequency, {}};
  for (const py::bytes& token : forbidden) options.forbidden.push_back(token);
  return Trainer(std::vector<std::string>(alphabet.begin(), alphabet.end()), std::move(options));
}

// Words as byte strings; symbol_of_byte[b] is the symbol of byte b.
void add_words(Trainer& trainer, const py::buffer& data_object, const py::buffer& offsets_object,
               const py::buffer& counts_object, const py::buffer& symbols_object) {
  const View<uint8_t> data(data_object), symbol_of_byte(symbols_object);
  const View<int64_t> offsets(offsets_object), counts(counts_object);
  if (symbol_of_byte.size() != 256) throw std::invalid_argument("need a symbol for each byte");
  if (offsets.size() < counts.size() + 1) throw std::invalid_argument("need words + 1 offsets");
  for (const uint8_t symbol : symbol_of_byte)
    if (symbol >= trainer.tokens().size()) throw std::invalid_argument("no such symbol");
  py::gil_scoped_release release;
  const size_t words = counts.size();
  for (size_t word = 0; word < words; ++word) {
    if (offsets[word] < 0 || offsets[word + 1] < offsets[word] ||
        static_cast<uint64_t>(offsets[word + 1]) > data.size())
      throw std::invalid_argument("word " + std::to_string(word) + " lies outside the data");
    if (counts[word] < 0)
      throw std::invalid_argument("word " + std::to_string(word) + " has a negative count");
  }
  if (words > 0) trainer.reserve(static_cast<size_t>(offsets[words] - offsets[0]), words);
  for (size_t word = 0; word < words; ++word) {
    const uint8_t* bytes = data.data() + offsets[word];
    trainer.add_word(static_cast<size_t>(offsets[word + 1] - offsets[word]), counts[word],
                     [&](size_t i) { return uint32_t{symbol_of_byte[bytes[i]]}; });
  }
}

// One column of the merges as an array of T.
template <typename T, typename Get>
Buffer column(const Trainer& trainer, Get&& get) {
  std::vector<T> values;
  values.reserve(trainer.merges().size());
  for (const Merge& merge : trainer.merges()) values.push_back(get(merge));
  return Buffer(std::move(values));
}

}  // namespace

void bind_trainer(py::module_& module) {
  py::class_<Trainer>(module, "Trainer")
      .def(py::init(&make_trainer), py::kw_only(), py::arg("alphabet"), py::arg("ties"),
           py::arg("max_tokens"), py::arg("min_frequency"), py::arg("forbidden"))
      .def("add_words", &add_words, py::kw_only(), py::arg("data"), py::arg("offsets"),
           py::arg("counts"), py::arg("symbol_of_byte"))
      .def("step", &Trainer::step, py::arg("merges"), py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("merge_count", [](const Trainer& t) { return t.merges().size(); })
      .def_property_readonly("token_count", [](const Trainer& t) { return t.tokens().size(); })
      .def_property_readonly("initial_tokens", &Trainer::initial_tokens)
      .def_property_readonly("vocabulary_full", &Trainer::vocabulary_full)
      .def("left",
           [](const Trainer& t) {
             return column<uint32_t>(t, [](const Merge& merge) { return merge.pair.left; });
           })
      .def("right",
           [](const Trainer& t) {
             return column<uint32_t>(t, [](const Merge& merge) { return merge.pair.right; });
           })
      .def("token",
           [](const Trainer& t) {
             return column<uint32_t>(t, [](const Merge& merge) { return merge.token; });
           })
      .def("count",
           [](const Trainer& t) {
             return column<int64_t>(t, [](const Merge& merge) { return merge.count; });
           })
      .def("tokens_left",
           [](const Trainer& t) {
             return column<int64_t>(t, [](const Merge& merge) { return merge.tokens_left; });
           })
      .def("tokens", [](const Trainer& t) {
        std::vector<py::bytes> tokens;
        for (const std::string& token : t.tokens()) tokens.emplace_back(token);
        return tokens;
      });
}

}  // namespace bpe
