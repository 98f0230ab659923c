// SPDX-License-Identifier: Apache-2.0
#include "leadline/calibrate.h"

#include <fmt/core.h>

#include <optional>
#include <set>
#include <utility>

#include "core/boundary.h"
#include "jobs/calibration_run.h"
#include "jobs/sample_shapes.h"

namespace leadline {
namespace jobs {

CalibrationMemory calibration_memory(const Model& model, const CalibrateOptions& options, ByteUnits units,
                                     const std::vector<Shape>& shapes) {
  std::set<int> subgraphs = {0};
  for (const SignatureInfo& signature : model.signatures()) subgraphs.insert(signature.subgraph);
  Calibrator calibrator(model, options);
  CalibrationMemory memory;
  for (const int subgraph : subgraphs) {
    if (subgraph == 0) resize_inputs(calibrator.interpreter(0), shapes);
    const RunMemory run = run_memory(calibrator.interpreter(subgraph));
    memory.peak = memory.peak + run.bytes;
    memory.complete = memory.complete && run.complete;
  }
  memory.detail = fmt::format("run {}, statistics {}", format_bytes(memory.peak.total(), units),
                              format_bytes(calibrator.statistics_bytes() + calibrator.calibration_bytes(), units));
  memory.result.add(MemoryCategory::kStatistics, calibrator.calibration_bytes());
  memory.peak.add(MemoryCategory::kStatistics, calibrator.statistics_bytes() + calibrator.calibration_bytes());
  return memory;
}

CalibrateResult run_calibration(Calibrator& calibrator, SampleReader& reader, JobBudget& budget,
                                const JobObserver& observer) {
  CalibrateResult result;
  for_each_sample(reader, progress_of(observer, "calibrate", "samples"), [&](const Sample& sample) {
    set_inputs(calibrator.interpreter(sample.subgraph), sample);
    calibrator.add_sample(sample.subgraph);
    budget.count_models();
  });
  result.calibration = calibrator.calibration();
  result.first_not_finite = calibrator.first_not_finite();
  reader.look_at(result.calibration, result.first_not_finite);
  result.findings = reader.findings();
  result.counted_peak_bytes = budget.peak();
  return result;
}

Progress progress_of(const JobObserver& observer, std::string_view phase, std::string_view unit) {
  if (!observer) return {};
  return [&observer, phase, unit](int64_t done, int64_t total) { return observer({phase, unit, done, total}); };
}

}  // namespace jobs

struct CalibrateJob::State {
  State(const Model& given, CalibrateOptions chosen) : model(given), options(std::move(chosen)) {}

  JobPlan plan(const SampleSource* samples) const {
    const auto model_memory = jobs::PhaseMemory::of(model);
    const ByteUnits units = jobs::units_of(options.budget, model);
    const jobs::CalibrationMemory memory =
        jobs::calibration_memory(model, options, units, jobs::shapes_from(model, samples));
    return jobs::make_plan("calibrate",
                           {model_memory.phase("load", "the file and its graph"),
                            (model_memory + memory.peak).phase("calibrate", memory.detail)},
                           0, memory.complete, units);
  }

  void start(const SampleSource& samples) {
    if (calibrator) return calibrator->clear();
    budget.emplace(options.budget, std::vector{model});
    budget->admit(jobs::with_samples(plan(&samples), samples.peak_bytes()));
    budget->count_shared(samples.peak_bytes(), MemoryCategory::kInputsOutputs);
    CalibrateOptions charged = options;
    charged.budget = budget->own();
    calibrator.emplace(model, charged);
  }

  Model model;
  CalibrateOptions options;
  std::optional<jobs::JobBudget> budget;
  std::optional<Calibrator> calibrator;
};

CalibrateJob::CalibrateJob(const Model& model, CalibrateOptions options) try
    : state_(std::make_unique<State>(model, std::move(options))) {
} catch (...) {
  rethrow_as_error();
}
CalibrateJob::~CalibrateJob() = default;
CalibrateJob::CalibrateJob(CalibrateJob&&) noexcept = default;
CalibrateJob& CalibrateJob::operator=(CalibrateJob&&) noexcept = default;

JobPlan CalibrateJob::plan(const SampleSource* samples) const try {
  return jobs::with_samples(state_->plan(samples), samples != nullptr ? samples->peak_bytes() : 0);
} catch (...) {
  rethrow_as_error();
}

void CalibrateJob::admit(const SampleSource* samples) const try {
  jobs::JobBudget(state_->options.budget, {state_->model}).admit(plan(samples));
} catch (...) {
  rethrow_as_error();
}

CalibrateResult CalibrateJob::run(SampleSource& samples, const JobObserver& observer) try {
  state_->start(samples);
  SampleReader reader(state_->model, samples, {.limit = state_->options.max_samples});
  return jobs::run_calibration(*state_->calibrator, reader, *state_->budget, observer);
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
