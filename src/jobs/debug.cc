// SPDX-License-Identifier: Apache-2.0
#include "leadline/debug.h"

#include <fmt/core.h>

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "core/boundary.h"
#include "jobs/calibration_run.h"
#include "jobs/comparison_run.h"
#include "jobs/debug_effects.h"
#include "jobs/equalized.h"
#include "jobs/job_budget.h"
#include "jobs/phase_memory.h"
#include "jobs/sample_shapes.h"

namespace leadline {

struct DebugJob::State {
  State(const Model& float_model, const Model& quantized_model, DebugOptions chosen)
      : reference(float_model), quantized(quantized_model), options(std::move(chosen)) {
    if (options.equalized) equalized.emplace(reference);
    plan_with({});
  }

  /// Plans for inputs of these shapes, where the model leaves sizes open; empty: those of its file.
  void plan_with(std::vector<Shape> sizes) {
    if (planned && sizes == shapes) return;
    if (options.equalized && !equalized) equalized.emplace(reference);  // a run took it
    shapes = std::move(sizes);
    effects.emplace(equalized ? equalized->outline() : reference, quantized, options, shapes);
    planned = make_plan();
  }

  JobPlan make_plan() const {
    DebugOptions planning = options;
    const ByteUnits units = jobs::units_of(options.budget, reference);
    // Without a limit: admit() compares with the caller's.
    planning.budget = Budget::with_limit(std::numeric_limits<int64_t>::max(), units);
    QuantizationDebugger debugger(equalized ? equalized->outline() : reference, quantized, planning);
    jobs::resize_inputs(debugger.interpreter(), shapes);
    JobPlan plan = debugger.plan();
    if (!equalized || !equalized->changed()) return with_effects(std::move(plan));
    // The given model stays beside the one with even channels.
    const jobs::PhaseMemory given = jobs::PhaseMemory::of(reference);
    const jobs::PhaseMemory models = given + jobs::PhaseMemory::of(quantized);
    jobs::PhaseMemory compares = given;
    for (const CategoryBytes& c : plan.phases.back().categories) compares.add(c.category, c.bytes);
    return with_effects(jobs::make_plan(
        "debug",
        {models.phase("load", plan.phases.front().detail),
         (models + equalized->peak())
             .phase("equalize",
                    fmt::format("the model with even channels {}", format_bytes(equalized->result().total(), units))),
         compares.phase("compare", plan.phases.back().detail)},
        0, plan.complete, units));
  }

  /// Samples are kept while comparing, for the phases that follow where the model lost something.
  JobPlan with_effects(JobPlan plan) const {
    if (!effects->effect_memory()) return plan;
    const ByteUnits units = plan.units;
    std::vector<JobPhase> phases(plan.phases.begin(), plan.phases.end() - 1);
    jobs::PhaseMemory held = jobs::PhaseMemory::of(phases.front().categories);
    if (equalized && equalized->changed()) held = held + equalized->result();
    held.add(MemoryCategory::kInputsOutputs, effects->sample_bytes());
    jobs::PhaseMemory compares = jobs::PhaseMemory::of(plan.phases.back().categories);
    compares.add(MemoryCategory::kInputsOutputs, effects->sample_bytes());
    phases.push_back(compares.phase("compare", plan.phases.back().detail));
    phases.push_back(
        (held + *effects->effect_memory())
            .phase("effects", fmt::format("samples that are kept {}", format_bytes(effects->sample_bytes(), units))));
    if (effects->suggestion_memory()) {
      phases.push_back((held + *effects->suggestion_memory()).phase("try", "models to try, one at a time"));
    }
    return jobs::make_plan("debug", std::move(phases), 0, plan.complete, units);
  }

  DebugJobResult run(SampleSource& samples, const JobObserver& observer) {
    jobs::JobBudget budget(options.budget, {reference, quantized});
    const bool open = jobs::leaves_sizes_open(reference, options.subgraph);
    plan_with(jobs::shapes_from(reference, &samples));
    budget.admit(jobs::with_samples(*planned, samples.peak_bytes()));
    Model source = reference;
    if (options.equalized) {
      if (!equalized) equalized.emplace(reference);  // a second run
      source = equalized->make(budget.own(), jobs::progress_of(observer, "equalize", "bytes"));
      if (!open) equalized.reset();
    }
    budget.count_shared(samples.peak_bytes(), MemoryCategory::kInputsOutputs);
    SampleReader reader(source, samples, {.limit = options.max_samples});
    jobs::KeptSamples kept(budget.own(), effects->sample_bytes(), reader.size());
    // Sizes that were not known, or larger than those that were.
    const auto plan_again = [&](const Sample& sample) {
      std::vector<Shape> largest = jobs::largest_shapes(shapes, jobs::shapes_of(sample));
      if (!open || largest == shapes) return;
      plan_with(std::move(largest));
      budget.admit_again(jobs::with_samples(*planned, samples.peak_bytes()));
      kept.raise_capacity(effects->sample_bytes());
    };
    DebugJobResult result;
    int subgraph = 0;
    {
      QuantizationDebugger debugger =
          jobs::run_comparison(source, quantized, options, reader, budget,
                               jobs::progress_of(observer, "compare", "samples"), &kept, plan_again);
      result.debug = debugger.result();
      subgraph = debugger.interpreter().options().subgraph;
      if (subgraph == options.subgraph) result.debug.plan = jobs::with_samples(*planned, samples.peak_bytes());
    }
    result.findings = reader.findings();
    effects->run(source, quantized, kept, budget, observer, subgraph, result.debug);
    result.counted_peak_bytes = budget.peak();
    return result;
  }

  Model reference;
  Model quantized;
  DebugOptions options;
  std::optional<jobs::EqualizedForm> equalized;
  std::optional<jobs::DebugEffects> effects;
  std::optional<JobPlan> planned;
  std::vector<Shape> shapes;  // what was planned for
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
  state_->plan_with(jobs::shapes_from(state_->reference, samples));
  return jobs::with_samples(*state_->planned, samples != nullptr ? samples->peak_bytes() : 0);
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
