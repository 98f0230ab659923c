// SPDX-License-Identifier: Apache-2.0
// leadline/evaluate.h.
#include "leadline/evaluate.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "engine_call.h"
#include "module.h"
#include "sample_tuples.h"
#include "user_reference.h"

namespace leadline::python {
namespace {

using Score = std::tuple<double, std::vector<std::pair<int64_t, int64_t>>, int64_t>;

void init_options(EvaluateOptions* self, const std::string& metric, int top_k, int output,
                  std::optional<Model> reference, nb::object function, int num_threads, int64_t max_samples,
                  bool per_sample, int64_t max_confusion_classes, std::shared_ptr<Budget> budget) {
  const Metric chosen = parse_metric(metric);
  new (self) EvaluateOptions();
  self->metric = chosen;
  self->top_k = top_k;
  self->output = output;
  self->reference = std::move(reference);
  self->num_threads = num_threads;
  self->max_samples = max_samples;
  self->per_sample = per_sample;
  self->max_confusion_classes = max_confusion_classes;
  self->budget = std::move(budget);
  if (function.is_none()) return;
  self->function = [held = std::make_shared<UserReference>(std::move(function))](const EvaluatedSample& sample) {
    const nb::gil_scoped_acquire gil;
    return nb::cast<double>(
        held->get()(sample.index, to_list(sample.outputs), to_list(sample.targets), to_list(sample.expected)));
  };
}

EvaluateResult run(EvaluateJob& self, SampleSource& samples, const nb::object& callback) {
  const JobObserver observer = observer_of(callback);
  const EngineCall call;
  return self.run(samples, observer);
}

Score run_evaluation_sample(Evaluator& self, int64_t index, int subgraph, nb::handle inputs, nb::handle targets) {
  const HeldTensors given(inputs), wanted(targets);
  Sample sample = given.sample(subgraph);
  sample.targets = wanted.tensors;
  const EngineCall call;
  self.set_sample(sample);
  const SampleScore score = self.run(index);
  return {score.value, score.answers, score.correct};
}

}  // namespace

void init_evaluate(nb::module_& m) {
  nb::class_<EvaluateOptions>(m, "EvaluateOptions", "How a model is evaluated.")
      .def("__init__", &init_options, nb::kw_only(), nb::arg("metric") = "accuracy", nb::arg("top_k") = 1,
           nb::arg("output") = 0, nb::arg("reference") = nb::none(), nb::arg("function") = nb::none(),
           nb::arg("num_threads") = 1, nb::arg("max_samples") = 0, nb::arg("per_sample") = false,
           nb::arg("max_confusion_classes") = 256, nb::arg("budget") = nb::none());
  nb::class_<EvaluateResult>(m, "EvaluateResult", "What evaluating a model came to.")
      .def_prop_ro(
          "metric", [](const EvaluateResult& r) { return metric_name(r.metric); }, "Name of the metric.")
      .def_ro("value", &EvaluateResult::value, "The mean of the metric.")
      .def_ro("samples", &EvaluateResult::samples, "How many samples were run.")
      .def_ro("answers", &EvaluateResult::answers, "Labels that were compared.")
      .def_ro("correct", &EvaluateResult::correct, "How many of them the model got right.")
      .def_ro("classes", &EvaluateResult::classes, "Rows of the table of answers; 0: there is none.")
      .def_ro("confusion", &EvaluateResult::confusion, "Answers by label, row after row.")
      .def_ro("per_sample", &EvaluateResult::per_sample, "The metric of each sample, where it was asked for.")
      .def_ro("seconds", &EvaluateResult::seconds, "How long it took.")
      .def_ro("counted_peak_bytes", &EvaluateResult::counted_peak_bytes, "The most memory that was charged at a time.")
      .def_prop_ro(
          "findings", [](const EvaluateResult& r) { return to_list(r.findings); },
          nb::for_getter(nb::sig("def findings(self) -> list[tuple[str, str, int | None, str | None]]")),
          "What was found about the samples, each as (severity, message, sample, input).")
      .def("to_json", &EvaluateResult::to_json, "All of it as JSON.")
      .def("__str__", &EvaluateResult::to_text);
  nb::class_<EvaluateJob>(m, "EvaluateJob", "Runs samples on threads of this process.")
      .def(
          "__init__",
          [](EvaluateJob* self, const Model& model, const EvaluateOptions& options) {
            const EngineCall call;
            new (self) EvaluateJob(model, options);
          },
          nb::arg("model"), nb::arg("options"))
      .def("plan", &EvaluateJob::plan, nb::arg("samples").none(), InEngine(), "What it will take.")
      .def("admit", &EvaluateJob::admit, nb::arg("samples").none(), InEngine(),
           "Raises BudgetError with the plan when it does not fit.")
      .def("run", &run, nb::arg("samples"), nb::arg("observer").none() = nb::none(), "Runs all samples.");
  nb::class_<Evaluator>(m, "Evaluator", "Runs single samples and scores them.")
      .def(
          "__init__",
          [](Evaluator* self, const Model& model, const EvaluateOptions& options) {
            const EngineCall call;
            new (self) Evaluator(model, options);
          },
          nb::arg("model"), nb::arg("options"))
      .def("run", &run_evaluation_sample, nb::arg("index"), nb::arg("subgraph"), nb::arg("inputs"), nb::arg("targets"),
           "The score of a sample: value, pairs of label and answer, how many are right.");
  nb::class_<ScoreSum>(m, "ScoreSum", "Sums up scores in the order of the samples.")
      .def(nb::init<const EvaluateOptions&>(), nb::arg("options"))
      .def(
          "add",
          [](ScoreSum& self, const Score& score) {
            self.add({std::get<0>(score), std::get<1>(score), std::get<2>(score)});
          },
          nb::arg("score"), "Adds the score of the next sample.")
      .def(
          "result",
          [](const ScoreSum& self, double seconds) {
            EvaluateResult result = self.result();
            result.seconds = seconds;
            return result;
          },
          nb::arg("seconds"), "The result so far, which took this long.");
}

}  // namespace leadline::python
