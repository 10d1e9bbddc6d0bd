// Python face of the encoder.
#include <pybind11/stl.h>

#include "bindings.h"
#include "buffer.h"
#include "encoder.h"
#include "ranked.h"
#include "text_column.h"

namespace bpe {

namespace {

template <typename T>
std::span<const T> span_of(const View<T>& view) {
  return {view.data(), view.size()};
}

using Columns = std::pair<Buffer, Buffer>;

Columns to_buffers(EncodedRows rows) {
  const size_t size = rows.ids.size() * sizeof(uint32_t);
  std::shared_ptr<uint32_t[]> ids = rows.ids.finish();
  const auto* data = reinterpret_cast<const uint8_t*>(ids.get());
  return {Buffer(std::move(ids), data, size), Buffer(std::move(rows.offsets))};
}

std::unique_ptr<Encoder> make_encoder(const py::buffer& token_data, const py::buffer& token_offsets,
                                      const py::buffer& merges,
                                      const std::vector<int64_t>& special_ids,
                                      const std::string& scheme, bool ignore_merges) {
  const View<uint8_t> data(token_data);
  const View<int64_t> offsets(token_offsets);
  const View<uint32_t> triples(merges);
  py::gil_scoped_release release;
  return std::make_unique<Encoder>(Vocabulary(span_of(data), span_of(offsets)), span_of(triples),
                                   special_ids, scheme, ignore_merges);
}

Columns encode(const Encoder& encoder, const TextColumn& column,
               const std::vector<int64_t>& allowed) {
  py::gil_scoped_release release;
  return to_buffers(encoder.encode(column, allowed));
}

Columns encode_pieces(const Encoder& encoder, const py::buffer& data, const py::buffer& pieces,
                      const py::buffer& row_ends) {
  const View<uint8_t> text(data);
  const View<int64_t> triples(pieces);
  const View<int64_t> ends(row_ends);
  py::gil_scoped_release release;
  return to_buffers(encoder.encode_pieces(span_of(text), span_of(triples), span_of(ends)));
}

Columns decode(const Encoder& encoder, const py::buffer& ids, const py::buffer& offsets) {
  const View<uint32_t> tokens(ids);
  const View<int64_t> rows(offsets);
  py::gil_scoped_release release;
  DecodedRows decoded = encoder.decode(span_of(tokens), span_of(rows));
  return {Buffer(std::move(decoded.data)), Buffer(std::move(decoded.offsets))};
}

Buffer merges_from_ranks(const py::buffer& token_data, const py::buffer& token_offsets) {
  const View<uint8_t> data(token_data);
  const View<int64_t> offsets(token_offsets);
  py::gil_scoped_release release;
  return Buffer(merges_of_ranks(Vocabulary(span_of(data), span_of(offsets))));
}

}  // namespace

void bind_encoder(py::module_& module) {
  py::class_<Encoder>(module, "Encoder")
      .def(py::init(&make_encoder), py::kw_only(), py::arg("token_data"), py::arg("token_offsets"),
           py::arg("merges"), py::arg("special_ids"), py::arg("scheme"), py::arg("ignore_merges"))
      .def("encode", &encode, py::arg("column"), py::arg("allowed"))
      .def("encode_pieces", &encode_pieces, py::arg("data"), py::arg("pieces"), py::arg("row_ends"))
      .def("decode", &decode, py::arg("ids"), py::arg("offsets"));
  module.def("merges_of_ranks", &merges_from_ranks, py::arg("token_data"),
             py::arg("token_offsets"));
}

}  // namespace bpe
