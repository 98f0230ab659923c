// SPDX-License-Identifier: Apache-2.0
#include "jobs/comparison_run.h"

#include <optional>
#include <utility>

#include "core/error.h"
#include "jobs/sample_shapes.h"

namespace leadline::jobs {

PhaseMemory comparison_memory(const Model& reference, const Model& quantized, const DebugOptions& options,
                              const std::vector<Shape>& shapes) {
  QuantizationDebugger debugger(reference, quantized, options);
  resize_inputs(debugger.interpreter(), shapes);
  const JobPlan plan = debugger.plan();
  return PhaseMemory::of(plan.phases.back().categories) - PhaseMemory::of(reference) - PhaseMemory::of(quantized);
}

QuantizationDebugger run_comparison(const Model& reference, const Model& quantized, DebugOptions options,
                                    SampleReader& reader, JobBudget& budget, const Progress& progress,
                                    KeptSamples* kept, const std::function<void(const Sample&)>& before) {
  const int planned = options.subgraph;
  options.budget = budget.own();
  std::optional<QuantizationDebugger> debugger;
  for_each_sample(reader, progress, [&](const Sample& sample) {
    if (!debugger) {
      options.subgraph = sample.subgraph;
      debugger.emplace(reference, quantized, options);
      if (sample.subgraph != planned) budget.admit(debugger->plan());
    }
    require(sample.subgraph == options.subgraph, ErrorCode::kInvalidArgument,
            "it is for another signature than those before; debug them apart");
    if (before && sample.subgraph == planned) before(sample);
    set_inputs(debugger->interpreter(), sample);
    debugger->add_sample();
    if (kept != nullptr) {
      // The float model's outputs come first, then the quantized one's, as many.
      kept->add(sample, debugger->interpreter(), debugger->interpreter().outputs().size() / 2);
    }
    budget.count_models();
  });
  return std::move(*debugger);
}

}  // namespace leadline::jobs
