// SPDX-License-Identifier: Apache-2.0
// leadline/calibrate.h, quantize.h, debug.h and tune.h: what jobs take before they start.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine_call.h"
#include "leadline/calibrate.h"
#include "leadline/debug.h"
#include "leadline/quantize.h"
#include "leadline/tune.h"
#include "module.h"

namespace leadline::python {
namespace {

void init_calibrate(CalibrateJob* self, const Model& model, int num_threads, std::shared_ptr<Budget> budget,
                    bool histograms, bool keep_state) {
  CalibrateOptions options;
  options.num_threads = num_threads;
  options.budget = std::move(budget);
  options.histograms = histograms;
  options.keep_state = keep_state;
  const EngineCall call;
  new (self) CalibrateJob(model, std::move(options));
}

void init_debug(DebugJob* self, const Model& float_model, const Model& quantized_model, int num_threads,
                std::shared_ptr<Budget> budget, bool own_error, int worst_channels, int histograms, bool equalized) {
  DebugOptions options;
  options.num_threads = num_threads;
  options.budget = std::move(budget);
  options.own_error = own_error;
  options.worst_channels = worst_channels;
  options.histograms = histograms;
  options.equalized = equalized;
  const EngineCall call;
  new (self) DebugJob(float_model, quantized_model, std::move(options));
}

/// Without the name of an agreement metric, the metric is the caller's.
void init_tune(TuneJob* self, const Model& model, QuantizeOptions quantize, QuantizationMode keep,
               const std::optional<std::string>& agreement, int max_trials) {
  TuneOptions options;
  options.quantize = std::move(quantize);
  options.keep = keep;
  options.max_trials = max_trials;
  if (agreement) {
    options.agreement = parse_agreement_metric(*agreement);
  } else {
    options.metric = [](std::span<const std::byte>) { return 0.0; };
  }
  const EngineCall call;
  new (self) TuneJob(model, std::move(options));
}

template <typename Job>
nb::class_<Job>& with_plan(nb::class_<Job>& job) {
  return job.def(
                "plan", [](const Job& self) { return self.plan(); }, InEngine(), "What it takes, phase by phase.")
      .def(
          "admit", [](const Job& self) { self.admit(); }, InEngine(),
          "Raises BudgetError with the plan when it does not fit the budget.");
}

}  // namespace

void init_jobs(nb::module_& m) {
  auto calibrate =
      nb::class_<CalibrateJob>(m, "CalibrateJob", "leadline.calibrate() before it starts.")
          .def("__init__", &init_calibrate, nb::arg("model"), nb::arg("num_threads") = 1,
               nb::arg("budget").none() = nb::none(), nb::arg("histograms") = true, nb::arg("keep_state") = false);
  with_plan(calibrate);
  auto quantize = nb::class_<QuantizeJob>(m, "QuantizeJob", "leadline.quantize() before it starts.")
                      .def(nb::init<const Model&, QuantizeOptions>(), nb::arg("model"), nb::arg("options"), InEngine())
                      .def_prop_ro(
                          "unmatched_rules",
                          [](const QuantizeJob& self) -> nb::typed<nb::list, nb::str> {
                            nb::list rules;
                            for (const RecipeRule& rule : self.unmatched_rules()) rules.append(to_str(describe(rule)));
                            return rules;
                          },
                          "Rules of the recipe that match no node.");
  with_plan(quantize);
  auto debug = nb::class_<DebugJob>(m, "DebugJob", "leadline.debug() before it starts.")
                   .def("__init__", &init_debug, nb::arg("float_model"), nb::arg("quantized_model"),
                        nb::arg("num_threads") = 1, nb::arg("budget").none() = nb::none(), nb::arg("own_error") = true,
                        nb::arg("worst_channels") = 8, nb::arg("histograms") = 16, nb::arg("equalized") = false);
  with_plan(debug);
  auto tune = nb::class_<TuneJob>(m, "TuneJob", "leadline.tune() before it starts.")
                  .def("__init__", &init_tune, nb::arg("model"), nb::arg("options"), nb::arg("keep"),
                       nb::arg("agreement").none() = nb::none(), nb::arg("max_trials") = 64);
  with_plan(tune);
}

}  // namespace leadline::python
