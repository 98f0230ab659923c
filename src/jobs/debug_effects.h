// SPDX-License-Identifier: Apache-2.0
// The second half of debugging, for a model that lost something: what its parts cost at the outputs, and advice.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "debug/effects.h"
#include "debug/mixed_graph.h"
#include "jobs/job_budget.h"
#include "jobs/kept_samples.h"
#include "jobs/output_run.h"
#include "jobs/phase_memory.h"
#include "leadline/debug_result.h"
#include "leadline/debugger.h"
#include "leadline/job_progress.h"
#include "leadline/model.h"
#include "leadline/quantizer.h"

namespace leadline::jobs {

class DebugEffects {
 public:
  /// Looks at both models; reads no weights. `reference` may be an outline. `shapes`: of the inputs of samples, where
  /// the model leaves sizes open.
  DebugEffects(const Model& reference, const Model& quantized, const DebugOptions& options,
               const std::vector<Shape>& shapes = {});

  /// Why effects cannot be measured for these models; empty when they can.
  const std::string& obstacle() const { return obstacle_; }
  /// For KeptSamples.
  int64_t sample_bytes() const { return sample_bytes_; }
  /// What both phases take besides the models and the samples that are kept. Nothing: there is no such phase.
  const std::optional<PhaseMemory>& effect_memory() const { return effect_memory_; }
  const std::optional<PhaseMemory>& suggestion_memory() const { return suggestion_memory_; }

  /// What parts of the network cost at the outputs. There must be no obstacle().
  /// `out_of_time`: what was measured by then is enough.
  debug::Effects measure(const Model& reference, const Model& quantized, const KeptSamples& samples, JobBudget& budget,
                         const JobObserver& observer, const std::function<bool()>& out_of_time = {}) const;
  /// Adds regions, suspects and suggestions to a result of all samples, which were for `subgraph`.
  void run(const Model& reference, const Model& quantized, const KeptSamples& samples, JobBudget& budget,
           const JobObserver& observer, int subgraph, DebugResult& result) const;

 private:
  std::vector<const KeptSamples::Kept*> as_many_as_time_allows(
      const Model& quantized, const std::vector<const KeptSamples::Kept*>& samples) const;
  OutputRunOptions how_to_run(const debug::MixedGraphs& graphs, const JobBudget& budget) const;
  DebugOptions options_;
  std::string obstacle_;
  int64_t sample_bytes_ = 0;
  std::optional<PhaseMemory> effect_memory_;
  std::optional<PhaseMemory> suggestion_memory_;
  std::optional<QuantizeOptions> made_with_;
};

}  // namespace leadline::jobs
