// Python face of the encoder.
#include <pybind11/stl.h>

#include "encode/encoder.h"
#include "encode/ranked.h"
#include "python/pretokenizer.h"
#include "python/unlocked.h"
#include "python/view.h"
#include "table/buffer.h"
#include "text/text_column.h"

namespace bpe {

namespace {

using Columns = std::pair<Buffer, Buffer>;
using Unencodables = std::vector<std::pair<int64_t, py::bytes>>;
using Encoded = std::tuple<Buffer, Buffer, Unencodables, std::pair<size_t, size_t>>;

std::shared_ptr<Encoder> make_encoder(
    const py::buffer& token_data, const py::buffer& token_offsets, const py::buffer& merges,
    const std::vector<int64_t>& special_ids, const PretokenizerArgument& pretokenizer,
    bool ignore_merges, const std::string& model, const std::string& affix,
    std::optional<uint32_t> unknown, uint32_t max_characters, bool byte_fallback, bool fuse_unknown,
    const std::string& mark, bool drops_space, const py::buffer& superwords,
    const py::buffer& marks, const std::map<int64_t, uint8_t>& token_flags) {
  const View<uint8_t> data(token_data);
  const View<int64_t> offsets(token_offsets);
  const View<uint32_t> triples(merges), across(superwords);
  const View<uint8_t> of_id(marks);
  const Unlocked unlocked;
  const size_t tokens = offsets.size() == 0 ? 0 : offsets.size() - 1;
  return std::make_shared<Encoder>(
      Vocabulary(span_of(data), span_of(offsets)), span_of(triples), special_ids,
      pretokenizer_of(pretokenizer), ignore_merges,
      Model{model_from_name(model), affix, unknown.value_or(Vocabulary::kNone), max_characters,
            byte_fallback, fuse_unknown, mark, drops_space},
      span_of(across), of_id.size() == 0 ? Marks() : Marks({of_id.begin(), of_id.end()}, tokens),
      token_flags);
}

// Runs without the GIL, with dropout if there are seeds.
template <typename Encode>
Encoded encode_rows(double dropout, const std::optional<py::buffer>& seeds, Encode encode) {
  const View<uint64_t> view(seeds);
  EncodedRows rows = unlocked([&] { return encode(Noise{dropout, span_of(view)}); });
  Unencodables unencodable;
  for (const auto& [row, found] : rows.unencodable) unencodable.emplace_back(row, found.text);
  return {rows.ids.finish(),
          Buffer(std::move(rows.offsets)),
          std::move(unencodable),
          {rows.cache_use.asked, rows.cache_use.misses}};
}

Encoded encode(const Encoder& encoder, const TextColumn& column,
               const std::vector<int64_t>& allowed, bool narrow, double dropout,
               const std::optional<py::buffer>& seeds) {
  return encode_rows(dropout, seeds, [&](const Noise& noise) {
    return encoder.encode(column, allowed, noise, narrow);
  });
}

Encoded encode_pieces(const Encoder& encoder, const py::buffer& data, const py::buffer& pieces,
                      const py::buffer& row_ends, bool cut, bool narrow, double dropout,
                      const std::optional<py::buffer>& seeds) {
  const View<uint8_t> text(data);
  const View<int64_t> triples(pieces);
  const View<int64_t> ends(row_ends);
  return encode_rows(dropout, seeds, [&](const Noise& noise) {
    return encoder.encode_pieces(span_of(text), span_of(triples), span_of(ends), cut, noise,
                                 narrow);
  });
}

Columns decode(const Encoder& encoder, const py::buffer& ids, const py::buffer& offsets,
               const std::vector<int64_t>& skipped) {
  const View<uint32_t> tokens(ids);
  const View<int64_t> rows(offsets);
  const Unlocked unlocked;
  ByteStrings decoded = encoder.decode(span_of(tokens), span_of(rows), skipped);
  return {Buffer(std::move(decoded.data)), Buffer(std::move(decoded.offsets))};
}

Buffer random_words(uint64_t seed, uint64_t first, size_t count) {
  SplitMix64 random(seed);
  random.skip(first);
  std::vector<uint64_t> words(count);
  for (uint64_t& word : words) word = random.next();
  return Buffer(std::move(words));
}

Buffer merges_from_ranks(const py::buffer& token_data, const py::buffer& token_offsets,
                         const std::string& model) {
  const View<uint8_t> data(token_data);
  const View<int64_t> offsets(token_offsets);
  const Unlocked unlocked;
  try {
    return Buffer(
        merges_of_ranks(Vocabulary(span_of(data), span_of(offsets)), model_from_name(model)));
  } catch (const Unencodable& error) {
    throw std::invalid_argument("no token is the character " + error.text);
  }
}

Buffer listed_merges_that_happen(const py::buffer& token_data, const py::buffer& token_offsets,
                                 const py::buffer& merges, const std::string& model) {
  const View<uint8_t> data(token_data);
  const View<int64_t> offsets(token_offsets);
  const View<uint32_t> triples(merges);
  const Unlocked unlocked;
  return Buffer(merges_that_happen(Vocabulary(span_of(data), span_of(offsets)), span_of(triples),
                                   model_from_name(model)));
}

}  // namespace

void bind_encoder(py::module_& module) {
  py::class_<Encoder, std::shared_ptr<Encoder>>(module, "Encoder")
      .def(py::init(&make_encoder), py::kw_only(), py::arg("token_data"), py::arg("token_offsets"),
           py::arg("merges"), py::arg("special_ids"), py::arg("pretokenizer"),
           py::arg("ignore_merges"), py::arg("model"), py::arg("affix"), py::arg("unknown"),
           py::arg("max_characters"), py::arg("byte_fallback") = false,
           py::arg("fuse_unknown") = false, py::arg("mark") = "", py::arg("drops_space") = false,
           py::arg("superwords") = py::bytes(), py::arg("marks") = py::bytes(),
           py::arg("token_flags") = std::map<int64_t, uint8_t>())
      .def("encode", &encode, py::arg("column"), py::arg("allowed"), py::kw_only(),
           py::arg("narrow") = false, py::arg("dropout") = 0.0, py::arg("seeds") = py::none())
      .def("encode_pieces", &encode_pieces, py::arg("data"), py::arg("pieces"), py::arg("row_ends"),
           py::kw_only(), py::arg("cut") = false, py::arg("narrow") = false,
           py::arg("dropout") = 0.0, py::arg("seeds") = py::none())
      .def("decode", &decode, py::arg("ids"), py::arg("offsets"),
           py::arg("skipped") = std::vector<int64_t>());
  module.def("random_words", &random_words, py::arg("seed"), py::arg("first"), py::arg("count"));
  module.def("merges_of_ranks", &merges_from_ranks, py::arg("token_data"), py::arg("token_offsets"),
             py::arg("model") = "bytes");
  module.def("merges_that_happen", &listed_merges_that_happen, py::arg("token_data"),
             py::arg("token_offsets"), py::arg("merges"), py::arg("model") = "bytes");
}

}  // namespace bpe
