// Python face of the counter, its sorted counts and the special tokens.
#include "count/counter.h"
#include "python/pretokenizer.h"
#include "python/unlocked.h"
#include "python/view.h"
#include "text/segments.h"

namespace bpe {

namespace {

std::shared_ptr<SortedCounts> make_run(Bytes data, Bytes offsets, int offset_width,
                                       std::span<const int64_t> counts,
                                       const std::optional<py::buffer>& documents,
                                       const std::optional<py::buffer>& positions) {
  if (documents.has_value() != positions.has_value())
    throw std::invalid_argument("documents and positions come together or not at all");
  const auto view_of = [](const std::optional<py::buffer>& numbers) {
    return numbers ? View<int64_t>(*numbers) : View<int64_t>();
  };
  const auto document_view = view_of(documents), position_view = view_of(positions);
  const auto document = document_view.span(), position = position_view.span();
  if (documents && (document.size() != counts.size() || position.size() != counts.size()))
    throw std::invalid_argument("documents and positions need one number a row");
  const Unlocked unlocked;
  const TextColumn keys(data, offsets, offset_width, 0, counts.size());
  auto sorted = std::make_shared<SortedCounts>(documents.has_value());
  sorted->reserve(keys.rows(), keys.bytes());
  for (size_t row = 0; row < keys.rows(); ++row)
    sorted->add(keys[row], counts[row],
                documents ? std::optional(Place{document[row], position[row]}) : std::nullopt);
  sorted->check();
  return sorted;
}

// The rows of a column cut at special tokens: parts, what each is (the id of its token, or -1 for
// text), and its row. Rows that are no text, as `what` says, stay as they are.
std::tuple<ByteStrings, Buffer, Buffer> split_column(const SpecialMatcher& matcher,
                                                     const TextColumn& column,
                                                     std::span<const int64_t> what,
                                                     const std::vector<int64_t>& ids) {
  if (what.size() != column.rows() || ids.size() != matcher.size())
    throw std::invalid_argument("need what each row is, and an id for each token");
  ByteStrings parts;
  std::vector<int64_t> found, rows;
  for (size_t row = 0; row < column.rows(); ++row) {
    const auto add = [&](Bytes part, int64_t is) {
      parts.add(part);
      found.push_back(is);
      rows.push_back(static_cast<int64_t>(row));
    };
    if (what[row] != kText) {
      add(column[row], what[row]);
      continue;
    }
    matcher.cut(
        column[row], [&](Bytes text) { add(text, kText); },
        [&](size_t which, Bytes token) { add(token, ids[which]); });
  }
  return {std::move(parts), Buffer(std::move(found)), Buffer(std::move(rows))};
}

}  // namespace

void bind_counter(py::module_& module) {
  py::class_<SpecialMatcher>(module, "SpecialMatcher")
      .def(py::init<std::vector<std::string>, std::vector<uint8_t>>(), py::arg("tokens"),
           py::arg("flags") = std::vector<uint8_t>())
      .def("split", &split_column, py::arg("column"), py::arg("what"), py::arg("ids"), Release());

  using Counts = const std::shared_ptr<SortedCounts>&;
  const auto when_ordered = [](Counts counts, const std::vector<int64_t>& values) {
    return counts->ordered ? std::optional(Buffer(counts, values)) : std::nullopt;
  };
  py::class_<SortedCounts, std::shared_ptr<SortedCounts>>(module, "SortedCounts")
      .def(py::init(&make_run), py::arg("data"), py::arg("offsets"), py::arg("offset_width"),
           py::arg("counts"), py::arg("documents") = py::none(), py::arg("positions") = py::none())
      .def_property_readonly("data", [](Counts c) { return Buffer(c, c->keys.data); })
      .def_property_readonly("offsets", [](Counts c) { return Buffer(c, c->keys.offsets); })
      .def_property_readonly("counts", [](Counts c) { return Buffer(c, c->counts); })
      .def_property_readonly("documents", [=](Counts c) { return when_ordered(c, c->documents); })
      .def_property_readonly("positions", [=](Counts c) { return when_ordered(c, c->positions); })
      .def("__len__", &SortedCounts::size)
      .def("total", &SortedCounts::total, Release())
      .def("split", &SortedCounts::split, py::arg("shards"), Release())
      .def("misplaced", &SortedCounts::misplaced, py::arg("shard"), py::arg("shards"), Release());

  module.def(
      "prune_run",
      [](const SortedCounts& counts, int64_t below, size_t id_bytes) {
        Losses losses{id_bytes};
        auto kept = pruned(counts, below, losses);
        return std::tuple(kept, losses.rows, losses.occurrences, losses.bytes,
                          Buffer(std::move(losses.at)));
      },
      py::arg("counts"), py::arg("below"), py::arg("id_bytes") = 0, Release());
  module.def("add_counts", &add_counts, py::arg("counts"), Release());
  module.def("stable_hash", &stable_hash, py::arg("data"));

  py::class_<Counter>(module, "Counter")
      .def(py::init([](const PretokenizerArgument& pretokenizer,
                       std::vector<std::string> special_tokens, bool track_order) {
             return std::make_unique<Counter>(pretokenizer_of(pretokenizer),
                                              std::move(special_tokens), track_order);
           }),
           py::arg("pretokenizer"), py::arg("special_tokens"), py::arg("track_order"))
      .def("add", &Counter::add, py::arg("column"), py::arg("places") = py::none(), Release())
      .def("__len__", &Counter::size, Release())
      .def_property_readonly("nbytes", py::cpp_function(&Counter::nbytes, Release()))
      .def("drain", &Counter::drain, py::arg("shards"), Release());
}

}  // namespace bpe
