// SPDX-License-Identifier: Apache-2.0
// The job that finds what quantization did to a model, layer by layer: the float and the quantized model run side by
// side.
//
//   leadline::DebugJob job(float_model, quantized_model);
//   std::cout << job.plan().to_text();
//   for (const auto& suspect : job.run(*samples).debug.suspects) std::cout << suspect.why << '\n';
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "leadline/debug_result.h"
#include "leadline/debugger.h"
#include "leadline/job_plan.h"
#include "leadline/job_progress.h"
#include "leadline/model.h"
#include "leadline/sample_reader.h"
#include "leadline/samples.h"

namespace leadline {

struct DebugJobResult {
  DebugResult debug;
  std::vector<SampleFinding> findings;  ///< about the samples
  int64_t counted_peak_bytes = 0;       ///< of what the job was charged, both models included
};

/// Runs samples through a float model, its quantized form and, for each quantized node, the float node on the same
/// inputs, all in one planned graph. Activations are not kept: every node's values are compared when they are there.
class DebugJob {
 public:
  /// Throws Error(kInvalidArgument) when the models do not belong together.
  DebugJob(const Model& float_model, const Model& quantized_model, DebugOptions options = {});
  ~DebugJob();
  DebugJob(DebugJob&&) noexcept;
  DebugJob& operator=(DebugJob&&) noexcept;

  /// For the shapes of the model and, where it leaves sizes open, those of the samples as far as they are known
  /// (SampleSource::sizes); larger ones are planned when they come, inside the budget.
  JobPlan plan(const SampleSource* samples = nullptr) const;
  /// Throws BudgetError with the plan when it does not fit the budget; run() begins with it.
  void admit(const SampleSource* samples = nullptr) const;
  /// Samples are for the float model, all of one signature. Throws BudgetError with the plan, before the first sample
  /// is read, when it does not fit.
  DebugJobResult run(SampleSource& samples, const JobObserver& observer = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leadline
