// SPDX-License-Identifier: Apache-2.0
// leadline/calibrate.h, quantize.h, debug.h and tune.h.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "calibrate_options.h"
#include "engine_call.h"
#include "leadline/calibrate.h"
#include "leadline/debug.h"
#include "leadline/quantize.h"
#include "leadline/tune.h"
#include "live_objects.h"
#include "module.h"
#include "sample_tuples.h"
#include "user_reference.h"

namespace leadline::python {
namespace {

/// Files are written straight into the memory of Python's bytes, which nothing else can see before they are done.
class BytesFile {
 public:
  QuantizeJob::Allocate allocator() {
    return [this](int64_t bytes) -> std::span<std::byte> {
      const nb::gil_scoped_acquire held;
      bytes_ = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(bytes)));
      if (!bytes_.is_valid()) throw nb::python_error();
      return {reinterpret_cast<std::byte*>(PyBytes_AsString(bytes_.ptr())), static_cast<size_t>(bytes)};
    };
  }
  /// The last one. Needs the GIL.
  const nb::object& get() const { return bytes_; }

 private:
  nb::object bytes_;
};

void init_calibrate(CalibrateJob* self, const Model& model, int num_threads, std::shared_ptr<Budget> budget,
                    bool histograms, bool keep_state, bool gram_matrices) {
  CalibrateOptions options = calibrate_options(num_threads, std::move(budget), histograms, keep_state);
  options.gram_matrices = gram_matrices;
  const EngineCall call;
  new (self) CalibrateJob(model, std::move(options));
}

nb::tuple run_calibrate(CalibrateJob& self, SampleSource& samples, const nb::object& callback) {
  const JobObserver observer = observer_of(callback);
  std::optional<CalibrateResult> result;
  {
    const EngineCall call;
    result = self.run(samples, observer);
  }
  return nb::make_tuple(Remembered<Calibration>{std::move(result->calibration)}, to_list(result->findings));
}

nb::tuple run_quantize(QuantizeJob& self, SampleSource* samples, const nb::object& callback) {
  const JobObserver observer = observer_of(callback);
  BytesFile file;
  QuantizeResult result;
  {
    const EngineCall call;
    result = self.run_into(file.allocator(), samples, observer);
  }
  return nb::make_tuple(file.get(), to_list(result.findings));
}

nb::tuple run_quantize_to_model(QuantizeJob& self, SampleSource* samples, const nb::object& callback) {
  const JobObserver observer = observer_of(callback);
  QuantizeResult result;
  {
    const EngineCall call;
    result = self.run_to_model(samples, observer);
  }
  return nb::make_tuple(Remembered<Model>{std::move(*result.model)}, to_list(result.findings));
}

nb::typed<nb::list, nb::str> unmatched_rules(const QuantizeJob& self) {
  nb::list rules;
  for (const RecipeRule& rule : self.unmatched_rules()) rules.append(to_str(describe(rule)));
  return rules;
}

void init_debug(DebugJob* self, const Model& float_model, const Model& quantized_model, int num_threads,
                std::shared_ptr<Budget> budget, bool own_error, int worst_channels, int histograms, bool equalized,
                bool effects, bool suggestions) {
  DebugOptions options;
  options.num_threads = num_threads;
  options.budget = std::move(budget);
  options.own_error = own_error;
  options.worst_channels = worst_channels;
  options.histograms = histograms;
  options.equalized = equalized;
  options.effects = effects;
  options.suggestions = suggestions;
  const EngineCall call;
  new (self) DebugJob(float_model, quantized_model, std::move(options));
}

nb::tuple run_debug(DebugJob& self, SampleSource& samples, const nb::object& callback) {
  const JobObserver observer = observer_of(callback);
  std::optional<DebugJobResult> result;
  {
    const EngineCall call;
    result = self.run(samples, observer);
  }
  return nb::make_tuple(std::move(result->debug), result->counted_peak_bytes);
}

/// A TuneJob, and the bytes that a metric of the user's is given.
class PythonTune {
 public:
  /// `metric` is a function of a file's bytes, or the name of a TuneMetric.
  PythonTune(const Model& model, QuantizeOptions quantize, QuantizationMode keep, double target, int max_trials,
             const nb::object& metric, nb::object on_trial, double max_seconds, double held_out, int front_trials) {
    TuneOptions options;
    options.quantize = std::move(quantize);
    options.keep = keep;
    options.target = target;
    options.max_trials = max_trials;
    options.max_seconds = max_seconds;
    options.held_out = held_out;
    options.front_trials = front_trials;
    if (nb::isinstance<nb::str>(metric)) {
      options.metric = parse_tune_metric(nb::cast<std::string>(metric));
    } else {
      options.function = [file = file_, held = std::make_shared<UserReference>(metric)](std::span<const std::byte>) {
        const nb::gil_scoped_acquire gil;
        return nb::cast<double>(nb::float_(held->get()(file->get())));
      };
    }
    if (!on_trial.is_none()) {
      options.on_trial = [held = std::make_shared<UserReference>(std::move(on_trial))](const TuneTrial& trial) {
        const nb::gil_scoped_acquire gil;
        held->get()(to_tuple(trial));
      };
    }
    const EngineCall call;
    job_ = std::make_unique<TuneJob>(model, std::move(options));
  }

  JobPlan plan(SampleSource* calibration, SampleSource* debug, SampleSource* held_out) const {
    return job_->plan({.calibration = calibration, .debug = debug, .held_out = held_out});
  }

  Record run(SampleSource* calibration, SampleSource* debug, SampleSource* held_out, const nb::object& callback) {
    const JobObserver observer = observer_of(callback);
    std::optional<TuneResult> found;
    {
      const EngineCall call;
      found =
          job_->run({.calibration = calibration, .debug = debug, .held_out = held_out}, observer, file_->allocator());
    }
    nb::dict result;
    result["content"] = file_->get();
    result["recipe"] = to_str(recipe_to_json(found->recipe));
    result["kept"] = to_list(found->kept);
    result["causes"] = to_list(found->causes);
    result["value"] = found->value;
    result["reached"] = found->reached;
    nb::list trials;
    for (const TuneTrial& trial : found->trials) trials.append(to_tuple(trial));
    result["trials"] = trials;
    nb::list front;
    for (const TuneTrial& trial : found->front) front.append(to_tuple(trial));
    result["front"] = front;
    result["bound"] = nb::none();
    if (const std::optional<TuneBound>& bound = found->bound) {
      result["bound"] = nb::make_tuple(bound->value, bound->samples, bound->lowest, bound->share, kTuneConfidence);
    }
    result["float_bytes"] = found->float_bytes;
    result["float_seconds"] = found->float_seconds;
    result["notes"] = to_list(found->notes);
    result["debug"] = found->debug ? nb::cast(std::move(*found->debug)) : nb::object(nb::none());
    result["findings"] = to_list(found->findings);
    return result;
  }

 private:
  static nb::tuple to_tuple(const TuneTrial& trial) {
    return nb::make_tuple(to_list(trial.kept), trial.value, trial.file_bytes, trial.seconds,
                          quantization_mode_name(trial.keep), to_str(recipe_to_json(trial.recipe())));
  }

  std::shared_ptr<BytesFile> file_ = std::make_shared<BytesFile>();
  std::unique_ptr<TuneJob> job_;
};

template <typename Job>
nb::class_<Job>& with_plan(nb::class_<Job>& job) {
  return job.def(
      "plan", [](const Job& self, const SampleSource* samples) { return self.plan(samples); },
      nb::arg("samples").none() = nb::none(), InEngine(), "What it takes, phase by phase.");
}

}  // namespace

void init_jobs(nb::module_& m) {
  auto calibrate =
      nb::class_<CalibrateJob>(m, "CalibrateJob", "leadline.calibrate() before it starts.")
          .def("__init__", &init_calibrate, nb::arg("model"), nb::arg("num_threads") = 1,
               nb::arg("budget").none() = nb::none(), nb::arg("histograms") = true, nb::arg("keep_state") = false,
               nb::arg("gram_matrices") = false)
          .def("run", &run_calibrate, nb::arg("samples"), nb::arg("observer").none() = nb::none(),
               nb::sig("def run(self, samples: SampleSource, observer: typing.Callable[[str, int, int | None], "
                       "typing.Any] | None = None) -> tuple[Calibration, list[tuple[str, str, int | None, str | "
                       "None]]]"),
               "Runs all samples. Returns the calibration and what was found about them.");
  with_plan(calibrate);
  auto quantize =
      nb::class_<QuantizeJob>(m, "QuantizeJob", "leadline.quantize() before it starts.")
          .def(nb::init<const Model&, QuantizeOptions>(), nb::arg("model"), nb::arg("options"), InEngine())
          .def_prop_ro("needs_samples", &QuantizeJob::needs_samples, "Whether run() has to be given samples.")
          .def_prop_ro("needs_gram_matrices", &QuantizeJob::needs_gram_matrices,
                       "Whether weights are rounded by Gram matrices.")
          .def_prop_ro("uses_samples", &QuantizeJob::uses_samples, "Whether run() reads samples that it is given.")
          .def_prop_ro("unmatched_rules", &unmatched_rules, "Rules of the recipe that match no node.")
          .def("run", &run_quantize, nb::arg("samples").none() = nb::none(), nb::arg("observer").none() = nb::none(),
               nb::sig("def run(self, samples: SampleSource | None = None, observer: typing.Callable[[str, int, int | "
                       "None], typing.Any] | None = None) -> tuple[bytes, list[tuple[str, str, int | None, str | "
                       "None]]]"),
               "Returns the quantized .tflite file and what was found about the samples.")
          .def("run_to_model", &run_quantize_to_model, nb::arg("samples").none() = nb::none(),
               nb::arg("observer").none() = nb::none(),
               nb::sig("def run_to_model(self, samples: SampleSource | None = None, observer: typing.Callable[[str, "
                       "int, int | None], typing.Any] | None = None) -> tuple[Model, list[tuple[str, str, int | None, "
                       "str | None]]]"),
               "The same with a model to run, in memory that goes back to the system with it.");
  with_plan(quantize);
  m.def(
      "equalized_model",
      [](const Model& model, const std::shared_ptr<Budget>& budget) {
        return Remembered<Model>{equalized_model(model, budget)};
      },
      nb::arg("model"), nb::arg("budget").none() = nb::none(), InEngine(),
      "The float model with even channels that quantizing with `equalize` begins with.");
  auto debug = nb::class_<DebugJob>(m, "DebugJob", "leadline.debug() before it starts.")
                   .def("__init__", &init_debug, nb::arg("float_model"), nb::arg("quantized_model"),
                        nb::arg("num_threads") = 1, nb::arg("budget").none() = nb::none(), nb::arg("own_error") = true,
                        nb::arg("worst_channels") = 8, nb::arg("histograms") = 16, nb::arg("equalized") = false,
                        nb::arg("effects") = true, nb::arg("suggestions") = true)
                   .def("run", &run_debug, nb::arg("samples"), nb::arg("observer").none() = nb::none(),
                        nb::sig("def run(self, samples: SampleSource, observer: typing.Callable[[str, int, int | "
                                "None], typing.Any] | None = None) -> tuple[DebugResult, int]"),
                        "Runs all samples. Returns the result and the most bytes that were charged at a time.");
  with_plan(debug);
  nb::class_<PythonTune>(m, "TuneJob", "leadline.tune() before it starts.")
      .def(nb::init<const Model&, QuantizeOptions, QuantizationMode, double, int, const nb::object&, nb::object, double,
                    double, int>(),
           nb::arg("model"), nb::arg("options"), nb::arg("keep"), nb::arg("target"), nb::arg("max_trials"),
           nb::arg("metric"), nb::arg("on_trial").none() = nb::none(), nb::arg("max_seconds") = 0.0,
           nb::arg("held_out") = 0.25, nb::arg("front_trials") = 4)
      .def("run", &PythonTune::run, nb::arg("calibration"), nb::arg("debug").none() = nb::none(),
           nb::arg("held_out").none() = nb::none(), nb::arg("observer").none() = nb::none(),
           "Searches. Returns the fields of leadline.TuneResult.")
      .def("plan", &PythonTune::plan, nb::arg("calibration").none() = nb::none(), nb::arg("debug").none() = nb::none(),
           nb::arg("held_out").none() = nb::none(), InEngine(), "What it takes, phase by phase.");
}

}  // namespace leadline::python
