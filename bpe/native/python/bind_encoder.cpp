// Python face of the encoder.
#include "encode/encoder.h"
#include "encode/ranked.h"
#include "python/pretokenizer.h"
#include "python/unlocked.h"
#include "python/view.h"
#include "table/buffer.h"
#include "text/text_column.h"

namespace bpe {

namespace {

using Unencodables = std::vector<std::pair<int64_t, py::bytes>>;
using Encoded = std::tuple<Buffer, Buffer, Unencodables, std::pair<size_t, size_t>>;

std::shared_ptr<Encoder> make_encoder(
    Bytes token_data, std::span<const int64_t> token_offsets, std::span<const uint32_t> merges,
    const std::vector<int64_t>& special_ids, const PretokenizerArgument& pretokenizer,
    bool ignore_merges, const std::string& model, const std::string& affix,
    std::optional<uint32_t> unknown, uint32_t max_characters, bool byte_fallback, bool fuse_unknown,
    const std::string& mark, bool drops_space, std::span<const uint32_t> superwords, Bytes marks) {
  const Unlocked unlocked;
  return std::make_shared<Encoder>(
      Vocabulary(token_data, token_offsets), merges, special_ids, pretokenizer_of(pretokenizer),
      ignore_merges,
      Model{model_from_name(model), affix, unknown.value_or(Vocabulary::kNone), max_characters,
            byte_fallback, fuse_unknown, mark, drops_space},
      superwords, std::vector<uint8_t>(marks.begin(), marks.end()));
}

// Calls encode() without the GIL.
template <typename Encode>
Encoded encoded(Encode encode) {
  EncodedRows rows = unlocked(encode);
  Unencodables unencodable;
  for (const auto& [row, found] : rows.unencodable) unencodable.emplace_back(row, found.text);
  return {rows.ids.finish(),
          Buffer(std::move(rows.offsets)),
          std::move(unencodable),
          {rows.cache_use.asked, rows.cache_use.misses}};
}

Encoded encode(const Encoder& encoder, const TextColumn& column, const SpecialMatcher& special,
               const std::vector<int64_t>& ids, bool narrow, double dropout,
               std::span<const uint64_t> seeds) {
  return encoded([&] { return encoder.encode(column, special, ids, {dropout, seeds}, narrow); });
}

Encoded encode_segments(const Encoder& encoder, const TextColumn& segments,
                        std::span<const int64_t> what, std::span<const int64_t> row_ends, bool cut,
                        bool narrow, double dropout, std::span<const uint64_t> seeds) {
  return encoded([&] {
    return encoder.encode_segments(segments, what, row_ends, cut, {dropout, seeds}, narrow);
  });
}

}  // namespace

void bind_encoder(py::module_& module) {
  py::class_<Encoder, std::shared_ptr<Encoder>>(module, "Encoder")
      .def(py::init(&make_encoder), py::kw_only(), py::arg("token_data"), py::arg("token_offsets"),
           py::arg("merges"), py::arg("special_ids"), py::arg("pretokenizer"),
           py::arg("ignore_merges"), py::arg("model"), py::arg("affix"), py::arg("unknown"),
           py::arg("max_characters"), py::arg("byte_fallback") = false,
           py::arg("fuse_unknown") = false, py::arg("mark") = "", py::arg("drops_space") = false,
           py::arg("superwords") = py::bytes(), py::arg("marks") = py::bytes())
      .def("encode", &encode, py::arg("column"), py::arg("special"), py::arg("ids"), py::kw_only(),
           py::arg("narrow") = false, py::arg("dropout") = 0.0, py::arg("seeds") = py::none())
      .def("encode_segments", &encode_segments, py::arg("segments"), py::arg("what"),
           py::arg("row_ends"), py::kw_only(), py::arg("cut") = false, py::arg("narrow") = false,
           py::arg("dropout") = 0.0, py::arg("seeds") = py::none())
      .def("decode", &Encoder::decode, py::arg("ids"), py::arg("offsets"),
           py::arg("skipped") = std::vector<int64_t>(), Release());
  module.def(
      "merges_of_ranks",
      [](Bytes data, std::span<const int64_t> offsets, const std::string& model) {
        return Buffer(merges_of_ranks(Vocabulary(data, offsets), model_from_name(model)));
      },
      py::arg("token_data"), py::arg("token_offsets"), py::arg("model") = "bytes", Release());
  module.def(
      "merges_that_happen",
      [](Bytes data, std::span<const int64_t> offsets, std::span<const uint32_t> merges,
         const std::string& model) {
        return Buffer(
            merges_that_happen(Vocabulary(data, offsets), merges, model_from_name(model)));
      },
      py::arg("token_data"), py::arg("token_offsets"), py::arg("merges"),
      py::arg("model") = "bytes", Release());
}

}  // namespace bpe
