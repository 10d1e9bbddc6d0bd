// Python face of the counter, its sorted counts and the special tokens.
#include <pybind11/stl.h>

#include "count/counter.h"
#include "python/pretokenizer.h"
#include "python/unlocked.h"
#include "python/view.h"

namespace bpe {

namespace {

using Release = py::call_guard<Unlocked>;

std::vector<std::string> to_strings(const std::vector<py::bytes>& values) {
  return {values.begin(), values.end()};
}

std::shared_ptr<SortedCounts> make_run(const py::buffer& data, const py::buffer& offsets,
                                       int offset_width, const py::buffer& counts,
                                       const std::optional<py::buffer>& documents,
                                       const std::optional<py::buffer>& positions) {
  if (documents.has_value() != positions.has_value())
    throw std::invalid_argument("documents and positions come together or not at all");
  const View<int64_t> count_view(counts);
  const size_t rows = count_view.size();
  const LentColumn keys(data, offsets, offset_width, 0, rows);
  const View<int64_t> document(documents), position(positions);
  if (documents && (document.size() != rows || position.size() != rows))
    throw std::invalid_argument("documents and positions need one number a row");
  const Unlocked unlocked;
  CountsColumns columns;
  size_t bytes = 0;
  for (size_t row = 0; row < rows; ++row) bytes += keys[row].size();
  columns.reserve(rows, bytes, documents.has_value());
  for (size_t row = 0; row < rows; ++row) {
    columns.add(keys[row], count_view[row],
                documents ? std::optional(Place{document[row], position[row]}) : std::nullopt);
  }
  auto sorted = std::make_shared<SortedCounts>(std::move(columns), documents.has_value());
  sorted->check();
  return sorted;
}

// Begin, end and index of each special token in a text, and of the text between, which has -1.
Buffer cut_special(const SpecialMatcher& matcher, const py::buffer& data) {
  const View<uint8_t> text(data);
  const Unlocked unlocked;
  std::vector<int64_t> parts;
  const auto add = [&](const uint8_t* from, const uint8_t* to, int64_t which) {
    parts.insert(parts.end(), {from - text.begin(), to - text.begin(), which});
  };
  matcher.cut(
      text.begin(), text.end(), [&](const uint8_t* from, const uint8_t* to) { add(from, to, -1); },
      [&](size_t which, const uint8_t* from, const uint8_t* to) {
        add(from, to, static_cast<int64_t>(which));
      });
  return Buffer(std::move(parts));
}

// What is between the special tokens of each text: data, offsets, and the number of the text.
py::tuple split_column(const SpecialMatcher& matcher, const TextColumn& column) {
  std::vector<uint8_t> data;
  std::vector<int64_t> offsets{0}, rows;
  unlocked([&] {
    for (size_t row = 0; row < column.rows(); ++row) {
      const Bytes text = column[row];
      matcher.cut(
          text.data(), text.data() + text.size(),
          [&](const uint8_t* from, const uint8_t* to) {
            data.insert(data.end(), from, to);
            offsets.push_back(static_cast<int64_t>(data.size()));
            rows.push_back(static_cast<int64_t>(row));
          },
          [](size_t, const uint8_t*, const uint8_t*) {});
    }
  });
  return py::make_tuple(Buffer(std::move(data)), Buffer(std::move(offsets)),
                        Buffer(std::move(rows)));
}

}  // namespace

void bind_counter(py::module_& module) {
  py::class_<SpecialMatcher>(module, "SpecialMatcher")
      .def(py::init([](const std::vector<py::bytes>& tokens, const std::vector<uint8_t>& flags) {
             return SpecialMatcher(to_strings(tokens), flags);
           }),
           py::arg("tokens"), py::arg("flags") = std::vector<uint8_t>())
      .def("cut", &cut_special, py::arg("data"))
      .def("split", &split_column, py::arg("column"));

  py::class_<SortedCounts, std::shared_ptr<SortedCounts>>(module, "SortedCounts")
      .def(py::init(&make_run), py::arg("data"), py::arg("offsets"), py::arg("offset_width"),
           py::arg("counts"), py::arg("documents") = py::none(), py::arg("positions") = py::none())
      .def_property_readonly("data", &SortedCounts::data)
      .def_property_readonly("offsets", &SortedCounts::offsets)
      .def_property_readonly("counts", &SortedCounts::counts)
      .def_property_readonly("documents", &SortedCounts::documents)
      .def_property_readonly("positions", &SortedCounts::positions)
      .def("__len__", &SortedCounts::size)
      .def("total", &SortedCounts::total, Release())
      .def("split", &SortedCounts::split, py::arg("shards"), Release())
      .def("misplaced", &SortedCounts::misplaced, py::arg("shard"), py::arg("shards"), Release());

  module.def(
      "prune_run",
      [](const SortedCounts& counts, int64_t below, size_t id_bytes) {
        Losses losses;
        losses.id_bytes = id_bytes;
        auto kept = unlocked([&] { return pruned(counts, below, losses); });
        return py::make_tuple(kept, losses.rows, losses.occurrences, losses.bytes,
                              Buffer(std::move(losses.at)));
      },
      py::arg("counts"), py::arg("below"), py::arg("id_bytes") = 0);

  module.def(
      "add_counts",
      [](const SortedCountsList& all) {
        for (const auto& one : all)
          if (!one) throw std::invalid_argument("None is not sorted counts");
        return add_counts(all);
      },
      py::arg("counts"), Release());

  module.def(
      "stable_hash",
      [](const py::buffer& data) {
        const View<uint8_t> view(data);
        return stable_hash(view.data(), view.size());
      },
      py::arg("data"));

  py::class_<Counter>(module, "Counter")
      .def(py::init([](const PretokenizerArgument& pretokenizer,
                       const std::vector<py::bytes>& special_tokens, bool track_order) {
             return std::make_unique<Counter>(pretokenizer_of(pretokenizer),
                                              to_strings(special_tokens), track_order);
           }),
           py::arg("pretokenizer"), py::arg("special_tokens"), py::arg("track_order"))
      .def(
          "add",
          [](Counter& counter, const TextColumn& column, const std::optional<py::buffer>& places) {
            const View<int64_t> numbers(places);
            const Unlocked unlocked;
            return counter.add(column, span_of(numbers));
          },
          py::arg("column"), py::arg("places") = py::none())
      .def("__len__", &Counter::size, Release())
      .def_property_readonly("nbytes", py::cpp_function(&Counter::nbytes, Release()))
      .def("drain", &Counter::drain, py::arg("shards"), Release());
}

}  // namespace bpe
