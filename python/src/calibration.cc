// SPDX-License-Identifier: Apache-2.0
// leadline/calibration.h.
#include "leadline/calibration.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "calibrate_options.h"
#include "engine_call.h"
#include "live_objects.h"
#include "module.h"
#include "sample_tuples.h"

namespace leadline::python {
namespace {

void init_calibrator(Calibrator* self, const Model& model, int num_threads, std::shared_ptr<Budget> budget,
                     bool histograms, bool keep_state, bool gram_matrices) {
  CalibrateOptions options = calibrate_options(num_threads, std::move(budget), histograms, keep_state);
  options.gram_matrices = gram_matrices;
  const EngineCall call;
  new (self) Calibrator(model, std::move(options));
}

nb::bytes to_bytes(const Calibration& self) {
  std::vector<std::byte> bytes;
  {
    const EngineCall call;
    bytes = self.to_bytes();
  }
  return nb::bytes(bytes.data(), bytes.size());
}

Remembered<Calibration> calibration_from_bytes(nb::handle bytes, BudgetArgument budget) {
  const BufferView view(bytes);
  const EngineCall call;
  return {Calibration::from_bytes(view.bytes(), to_budget(std::move(budget)))};
}

std::string describe_calibration(const Calibration& self) {
  return "<leadline.Calibration: " + std::to_string(self.samples()) + " samples, " + (self.histograms() ? "" : "no ") +
         "histograms, " + format_bytes(self.memory_bytes()) + ">";
}

std::optional<std::pair<float, float>> range(const Calibration& self, int subgraph, int tensor,
                                             const CalibrationRule& rule, int bits, bool symmetric) {
  const auto found = self.range(subgraph, tensor, rule, bits, symmetric);
  if (!found.has_value()) return std::nullopt;
  return std::pair(found->min, found->max);
}

std::optional<std::tuple<int64_t, int, int>> first_not_finite(const Calibrator& self) {
  const auto found = self.first_not_finite();
  if (!found.has_value()) return std::nullopt;
  return std::tuple(found->sample, found->subgraph, found->tensor);
}

void run_calibration_sample(Calibrator& self, int subgraph, nb::handle inputs) {
  const HeldTensors given(inputs);
  const Sample sample = given.sample(subgraph);
  const EngineCall call;
  set_inputs(self.interpreter(subgraph), sample);
  self.add_sample(subgraph);
}

}  // namespace

void init_calibration(nb::module_& m) {
  nb::enum_<CalibrationMethod>(m, "CalibrationMethod", "How a range is chosen from what was seen.")
      .value("MIN_MAX", CalibrationMethod::kMinMax, "The smallest and the largest value.")
      .value("MOVING_AVERAGE", CalibrationMethod::kMovingAverage,
             "Of the smallest and largest values of the last 256 samples, later ones counting more.")
      .value("PERCENTILE", CalibrationMethod::kPercentile, "All but the rarest values.")
      .value("MSE", CalibrationMethod::kMse, "The range whose integers lie nearest in the mean square.")
      .value("KL", CalibrationMethod::kKl, "The range whose integers keep the distribution best.");
  nb::class_<CalibrationRule>(m, "CalibrationRule", "A method with its numbers.")
      .def(
          "__init__",
          [](CalibrationRule* self, CalibrationMethod method, double percentile, double momentum) {
            new (self) CalibrationRule{method, percentile, momentum};
          },
          nb::arg("method") = CalibrationMethod::kMinMax, nb::arg("percentile") = CalibrationRule{}.percentile,
          nb::arg("momentum") = CalibrationRule{}.momentum)
      .def_rw("method", &CalibrationRule::method)
      .def_rw("percentile", &CalibrationRule::percentile, "Share of values inside the range, above 50.")
      .def_rw("momentum", &CalibrationRule::momentum, "Weight of the past in a moving average.");
  nb::class_<TensorCalibration>(m, "TensorCalibration", "What samples said about one tensor.")
      .def_ro("subgraph", &TensorCalibration::subgraph)
      .def_ro("tensor", &TensorCalibration::tensor, "Number in its subgraph.")
      .def_prop_ro("name", [](const TensorCalibration& self) { return to_str(self.name); })
      .def_ro("elements", &TensorCalibration::elements, "Finite values seen.")
      .def_ro("not_finite", &TensorCalibration::not_finite, "NaN and infinite values seen.")
      .def_prop_ro("min", [](const TensorCalibration& self) { return self.range.min; })
      .def_prop_ro("max", [](const TensorCalibration& self) { return self.range.max; });
  nb::class_<Calibration>(m, "Calibration", nb::is_weak_referenceable(),
                          "Statistics of a model's float tensors over samples. Merging is exact, pickling works.")
      .def(nb::init<>())
      .def("merge", &Calibration::merge, nb::arg("later"), InEngine(), "Adds samples that come after these.")
      .def_prop_ro("samples", &Calibration::samples)
      .def_prop_ro("histograms", &Calibration::histograms, "Whether it can serve every method.")
      .def_prop_ro("gram_matrices", &Calibration::gram_matrices, "Whether it can serve rounding='comq'.")
      .def_prop_ro("memory_bytes", &Calibration::memory_bytes, "Memory it takes, as charged to its budget.")
      .def("is_of", &Calibration::is_of, nb::arg("model"), InEngine(), "Whether it was made from this model.")
      .def("tensors", &Calibration::tensors, InEngine(), "All float tensors, also those no sample reached.")
      .def("range", &range, nb::arg("subgraph"), nb::arg("tensor"), nb::arg("rule") = CalibrationRule{},
           nb::arg("bits") = 8, nb::arg("symmetric") = false, InEngine(),
           "(min, max) for integers of these bits; None when no sample reached the tensor.")
      .def("to_bytes", &to_bytes, "To be kept or sent to another process. Equal calibrations give equal bytes.")
      .def_static("from_bytes", &calibration_from_bytes, nb::arg("bytes"), nb::arg("budget").none() = nb::none(),
                  nb::sig("def from_bytes(bytes: typing_extensions.Buffer, budget: Budget | int | str | None = None) "
                          "-> Calibration"),
                  "What to_bytes() returned.")
      .def("__getstate__", &to_bytes)
      .def("__setstate__",
           [](Calibration* self, const nb::bytes& state) {
             const auto* data = reinterpret_cast<const std::byte*>(state.data());
             new (self) Calibration(Calibration::from_bytes({data, state.size()}));
           })
      .def("__repr__", &describe_calibration);
  m.def(
      "calibration_of",
      [](const Model& model, BudgetArgument budget) {
        return Remembered<Calibration>{calibration_of(model, to_budget(std::move(budget)))};
      },
      nb::arg("calibrated_model"), nb::arg("budget").none() = nb::none(), InEngine(),
      nb::sig("def calibration_of(calibrated_model: Model, budget: Budget | int | str | None = None) -> Calibration"),
      "The ranges that the file of a calibrated model has for its tensors, as if one sample had said them.");
  nb::class_<Calibrator>(m, "Calibrator",
                         "Runs single samples and records what the tensors hold: what a worker of a cluster does.")
      .def("__init__", &init_calibrator, nb::arg("model"), nb::arg("num_threads") = 1,
           nb::arg("budget").none() = nb::none(), nb::arg("histograms") = true, nb::arg("keep_state") = false,
           nb::arg("gram_matrices") = false)
      .def("interpreter", &Calibrator::interpreter, nb::arg("subgraph") = 0, nb::rv_policy::reference_internal,
           InEngine(), "To resize the inputs of a subgraph and set their values.")
      .def("add_sample", &Calibrator::add_sample, nb::arg("subgraph") = 0, InEngine(),
           "Runs and records; a run that fails leaves no trace.")
      .def("run_sample", &run_calibration_sample, nb::arg("subgraph"), nb::arg("inputs"),
           "The same of inputs as SampleReader.next() returns them.")
      .def(
          "calibration", [](const Calibrator& self) { return Remembered<Calibration>{self.calibration()}; }, InEngine(),
          "The statistics so far.")
      .def_prop_ro("first_not_finite", &first_not_finite,
                   "Sample, subgraph and tensor where NaN or infinity first came up, or None.")
      .def("clear", &Calibrator::clear, InEngine(), "Forgets all samples.")
      .def_prop_ro("statistics_bytes", &Calibrator::statistics_bytes,
                   "Memory of the statistics besides the interpreters, known from the start.");
}

}  // namespace leadline::python
