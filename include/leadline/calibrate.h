// SPDX-License-Identifier: Apache-2.0
// The job that runs a float model on samples and records what its tensors hold.
//
//   leadline::CalibrateJob job(model);
//   std::cout << job.plan().to_text();
//   const leadline::Calibration calibration = job.run(*samples).calibration;
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "leadline/calibration.h"
#include "leadline/job_plan.h"
#include "leadline/job_progress.h"
#include "leadline/model.h"
#include "leadline/sample_reader.h"
#include "leadline/samples.h"

namespace leadline {

struct CalibrateResult {
  Calibration calibration;
  std::optional<NotFiniteValue> first_not_finite;
  std::vector<SampleFinding> findings;  ///< about the samples
  int64_t counted_peak_bytes = 0;       ///< of what the job was charged, the model included
};

/// Runs samples through a float model. Memory does not grow with their number.
class CalibrateJob {
 public:
  explicit CalibrateJob(const Model& model, CalibrateOptions options = {});
  ~CalibrateJob();
  CalibrateJob(CalibrateJob&&) noexcept;
  CalibrateJob& operator=(CalibrateJob&&) noexcept;

  /// For the shapes of the model; samples of other shapes are planned when they come, inside the budget.
  JobPlan plan(const SampleSource* samples = nullptr) const;
  /// Throws BudgetError with the plan when it does not fit the budget; run() begins with it.
  void admit(const SampleSource* samples = nullptr) const;
  /// Throws BudgetError with the plan, before the first sample is read, when it does not fit; Error(kInvalidArgument)
  /// for samples that do not fit the model. A second run begins from nothing and uses the memory of the first.
  CalibrateResult run(SampleSource& samples, const JobObserver& observer = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leadline
