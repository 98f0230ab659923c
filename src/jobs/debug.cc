// SPDX-License-Identifier: Apache-2.0
#include "leadline/debug.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

#include "core/boundary.h"
#include "jobs/calibration_run.h"
#include "jobs/comparison_run.h"
#include "jobs/equalized.h"
#include "jobs/job_budget.h"
#include "jobs/phase_memory.h"

namespace leadline {

struct DebugJob::State {
  State(const Model& float_model, const Model& quantized_model, DebugOptions chosen)
      : reference(float_model), quantized(quantized_model), options(std::move(chosen)) {
    if (options.equalized) equalized.emplace(reference);
    planned = plan_for(options.subgraph);
  }

  JobPlan plan_for(int subgraph) const {
    DebugOptions planning = options;
    planning.subgraph = subgraph;
    const ByteUnits units = jobs::units_of(options.budget, reference);
    // Without a limit: admit() compares with the caller's.
    planning.budget = Budget::with_limit(std::numeric_limits<int64_t>::max(), units);
    JobPlan plan = QuantizationDebugger(equalized ? equalized->outline() : reference, quantized, planning).plan();
    if (!equalized || !equalized->changed()) return plan;
    // The given model stays beside the one with even channels.
    const jobs::PhaseMemory given = jobs::PhaseMemory::of(reference);
    const jobs::PhaseMemory models = given + jobs::PhaseMemory::of(quantized);
    jobs::PhaseMemory compares = given;
    for (const CategoryBytes& c : plan.phases.back().categories) compares.add(c.category, c.bytes);
    return jobs::make_plan("debug",
                           {models.phase("load", plan.phases.front().detail),
                            (models + equalized->peak())
                                .phase("equalize", fmt::format("the model with even channels {}",
                                                               format_bytes(equalized->result().total(), units))),
                            compares.phase("compare", plan.phases.back().detail)},
                           0, plan.complete, units);
  }

  DebugJobResult run(SampleSource& samples, const JobObserver& observer) {
    jobs::JobBudget budget(options.budget, {reference, quantized});
    budget.admit(jobs::with_samples(planned, samples.peak_bytes()));
    Model source = reference;
    if (options.equalized) {
      if (!equalized) equalized.emplace(reference);  // a second run
      source = equalized->make(budget.own(), jobs::progress_of(observer, "equalize", "bytes"));
      equalized.reset();
    }
    budget.count_shared(samples.peak_bytes(), MemoryCategory::kInputsOutputs);
    SampleReader reader(source, samples, {.limit = options.max_samples});
    QuantizationDebugger debugger = jobs::run_comparison(source, quantized, options, reader, budget,
                                                         jobs::progress_of(observer, "compare", "samples"));
    DebugJobResult result{debugger.result(), reader.findings(), budget.peak()};
    if (debugger.interpreter().options().subgraph == options.subgraph)
      result.debug.plan = jobs::with_samples(planned, samples.peak_bytes());
    return result;
  }

  Model reference;
  Model quantized;
  DebugOptions options;
  std::optional<jobs::EqualizedForm> equalized;
  JobPlan planned;
};

DebugJob::DebugJob(const Model& float_model, const Model& quantized_model, DebugOptions options) try
    : state_(std::make_unique<State>(float_model, quantized_model, std::move(options))) {
} catch (...) {
  rethrow_as_error();
}
DebugJob::~DebugJob() = default;
DebugJob::DebugJob(DebugJob&&) noexcept = default;
DebugJob& DebugJob::operator=(DebugJob&&) noexcept = default;

JobPlan DebugJob::plan(const SampleSource* samples) const try {
  return jobs::with_samples(state_->planned, samples != nullptr ? samples->peak_bytes() : 0);
} catch (...) {
  rethrow_as_error();
}

void DebugJob::admit(const SampleSource* samples) const try {
  jobs::JobBudget(state_->options.budget, {state_->reference, state_->quantized}).admit(plan(samples));
} catch (...) {
  rethrow_as_error();
}

DebugJobResult DebugJob::run(SampleSource& samples, const JobObserver& observer) try {
  return state_->run(samples, observer);
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
