// SPDX-License-Identifier: Apache-2.0
// leadline/samples.h and leadline/sample_reader.h. A tensor of a sample is a tuple in Python: name, DType, shape,
// buffer and what its type is called on the way in; DType, shape and bytes on the way out, so that it can be sent
// anywhere.
#include "leadline/samples.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "engine_call.h"
#include "leadline/error.h"
#include "leadline/sample_reader.h"
#include "module.h"
#include "sample_tuples.h"
#include "user_reference.h"

namespace leadline::python {

Shape shape_of(nb::handle sizes) {
  Shape shape;
  for (const nb::handle size : sizes) shape.push_back(nb::cast<int64_t>(size));
  return shape;
}

nb::tuple to_tuple(const SampleTensor& tensor) {
  return nb::make_tuple(tensor.dtype, to_tuple(tensor.shape), nb::bytes(tensor.data.data(), tensor.data.size()));
}

nb::list to_list(std::span<const SampleTensor> tensors) {
  nb::list list;
  for (const SampleTensor& tensor : tensors) list.append(to_tuple(tensor));
  return list;
}

HeldTensors::HeldTensors(nb::handle tuples) {
  for (const nb::handle item : tuples) {
    const auto fields = nb::cast<nb::tuple>(item);
    buffers.push_back(hold_buffer(fields[2]));
    tensors.push_back(
        {.dtype = nb::cast<DType>(fields[0]), .shape = shape_of(fields[1]), .data = buffers.back()->bytes()});
  }
}

Sample HeldTensors::sample(int subgraph) const {
  Sample sample;
  sample.subgraph = subgraph;
  sample.inputs = tensors;
  return sample;
}

namespace {

/// Samples of a Python object: next() returns (signature, inputs, targets), or None at the end; size() an int or None;
/// rewind() whether it begins again; sizes() (signature, names and shapes of inputs), or None.
class PythonSource final : public SampleSource {
 public:
  explicit PythonSource(nb::object reader) : reader_(std::move(reader)) {}

  bool next(Sample& sample) override {
    const nb::gil_scoped_acquire gil;
    held_.clear();
    const nb::object made = reader_.get().attr("next")();
    if (made.is_none()) return false;
    const auto fields = nb::cast<nb::tuple>(made);
    sample.signature = nb::cast<std::string>(fields[0]);
    sample.inputs = tensors(fields[1]);
    sample.targets = tensors(fields[2]);
    return true;
  }
  std::optional<int64_t> size() const override {
    const nb::gil_scoped_acquire gil;
    return nb::cast<std::optional<int64_t>>(reader_.get().attr("size")());
  }
  bool rewind() override {
    const nb::gil_scoped_acquire gil;
    held_.clear();
    return nb::cast<bool>(reader_.get().attr("rewind")());
  }

  Sample sizes() const override {
    const nb::gil_scoped_acquire gil;
    Sample sample;
    const nb::object known = reader_.get().attr("sizes")();
    if (known.is_none()) return sample;
    const auto fields = nb::cast<nb::tuple>(known);
    sample.signature = nb::cast<std::string>(fields[0]);
    for (const nb::handle item : fields[1]) {
      sample.inputs.push_back({.name = nb::cast<std::string>(item[0]), .shape = shape_of(item[1])});
    }
    return sample;
  }

 private:
  std::vector<SampleTensor> tensors(nb::handle tuples) {
    std::vector<SampleTensor> result;
    for (const nb::handle item : tuples) {
      const auto fields = nb::cast<nb::tuple>(item);
      held_.push_back(hold_buffer(fields[3]));
      result.push_back({nb::cast<std::string>(fields[0]), nb::cast<DType>(fields[1]), shape_of(fields[2]),
                        held_.back()->bytes(), nb::cast<std::string>(fields[4])});
    }
    return result;
  }

  UserReference reader_;
  std::vector<std::shared_ptr<const BufferView>> held_;  // of the sample that was read last
};

std::unique_ptr<SampleSource> open(const std::string& path, const Model& model, std::shared_ptr<Budget> budget,
                                   std::pair<int64_t, int64_t> image_size, std::vector<float> mean,
                                   std::vector<float> scale, const std::string& colors, const std::string& resize,
                                   std::string labels, std::string classes) {
  SampleFileOptions options;
  options.budget = std::move(budget);
  options.pictures.height = image_size.first;
  options.pictures.width = image_size.second;
  options.pictures.mean = std::move(mean);
  options.pictures.scale = std::move(scale);
  options.pictures.colors = parse_picture_colors(colors);
  options.pictures.resize = parse_picture_resize(resize);
  options.labels = std::move(labels);
  options.classes = std::move(classes);
  const EngineCall call;
  return open_samples(path, model, std::move(options));
}

void look_at(SampleReader& self, const Calibration& calibration,
             std::optional<std::tuple<int64_t, int, int>> first_not_finite) {
  std::optional<NotFiniteValue> value;
  if (first_not_finite) value = std::make_from_tuple<NotFiniteValue>(*first_not_finite);
  const EngineCall call;
  self.look_at(calibration, value);
}

nb::object next_tuple(SampleReader& reader) {
  const Sample* sample = nullptr;
  {
    const EngineCall call;
    sample = reader.next();
  }
  if (sample == nullptr) return nb::none();
  return nb::make_tuple(sample->subgraph, to_list(std::span(sample->inputs)), to_list(std::span(sample->targets)));
}

}  // namespace

nb::list to_list(const std::vector<SampleFinding>& findings) {
  nb::list list;
  for (const SampleFinding& finding : findings) {
    const bool warning = finding.severity == SampleFinding::Severity::kWarning;
    list.append(nb::make_tuple(warning ? "warning" : "note", to_str(finding.message), finding.sample,
                               finding.input.empty() ? nb::object(nb::none()) : nb::object(to_str(finding.input))));
  }
  return list;
}

void init_samples(nb::module_& m) {
  nb::class_<SampleSource>(m, "SampleSource", "Samples one after the other, one in memory at a time.")
      .def_prop_ro("size", &SampleSource::size, "How many samples there are, or None where that is not known.")
      .def_prop_ro("peak_bytes", &SampleSource::peak_bytes, "The most bytes it holds at a time.");
  m.def(
      "python_samples",
      [](nb::object reader) -> std::unique_ptr<SampleSource> {
        return std::make_unique<PythonSource>(std::move(reader));
      },
      nb::arg("reader"), "Samples of an object with the methods next, size, sizes and rewind.");
  m.def("open_samples", &open, nb::arg("path"), nb::arg("model"), nb::arg("budget").none(), nb::arg("image_size"),
        nb::arg("mean"), nb::arg("scale"), nb::arg("colors"), nb::arg("resize"), nb::arg("labels"), nb::arg("classes"),
        "Samples of numpy's files or pictures.");
  m.def("reads_pictures", &reads_pictures, "Whether this build can read pictures.");
  nb::class_<SampleReader>(m, "SampleReader", "Samples brought to the form a model takes, and checked on the way.")
      .def(
          "__init__",
          [](SampleReader* self, const Model& model, SampleSource& source, int64_t limit, bool lint) {
            new (self) SampleReader(model, source, {limit, lint});
          },
          nb::arg("model"), nb::arg("source"), nb::arg("limit") = 0, nb::arg("lint") = true, nb::keep_alive<1, 3>())
      .def("next", &next_tuple,
           nb::sig("def next(self) -> tuple[int, list[tuple[DType, tuple[int, ...], bytes]], list[tuple[DType, "
                   "tuple[int, ...], bytes]]] | None"),
           "The next sample as (subgraph, inputs, targets), or None.")
      .def(
          "read_all",
          [](SampleReader& self) {
            while (self.next() != nullptr) continue;
          },
          InEngine(), "Reads and checks what is left.")
      .def("look_at", &look_at, nb::arg("calibration"), nb::arg("first_not_finite").none(),
           "Adds what shows when the samples were run.")
      .def_prop_ro("count", &SampleReader::count, "Samples read so far.")
      .def_prop_ro("size", &SampleReader::size, "Of all samples, or None.")
      .def_prop_ro(
          "findings", [](const SampleReader& self) { return to_list(self.findings()); },
          nb::for_getter(nb::sig("def findings(self) -> list[tuple[str, str, int | None, str | None]]")),
          "What was found, each as (severity, message, sample, input).");
}

}  // namespace leadline::python
