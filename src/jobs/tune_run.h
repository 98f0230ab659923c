// SPDX-License-Identifier: Apache-2.0
// The search of a TuneJob that was admitted: it calibrates, holds samples out, measures files of kept nodes, and proves
// what it found.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "jobs/job_budget.h"
#include "leadline/calibrate.h"
#include "leadline/debugger.h"
#include "leadline/job_progress.h"
#include "leadline/model.h"
#include "leadline/tune.h"

namespace leadline::jobs {

DebugOptions ordering_options(const QuantizeOptions& options);
DebugOptions effect_options(const QuantizeOptions& options);
DebugOptions agreement_options(const QuantizeOptions& options);
bool measures_accuracy(const TuneOptions& options);
bool calibrates(const TuneOptions& options);
CalibrateOptions calibrate_options(const TuneOptions& options, std::shared_ptr<Budget> budget);

struct TuneTask {
  const Model& source;  ///< the float model, with even channels where they were asked for
  const TuneOptions& options;
  TuneSamples samples;
  const std::vector<Shape>& shapes;  ///< that were planned for, where the model leaves sizes open
  JobBudget& budget;
  const JobObserver& observer;
  const QuantizeJob::Allocate& allocate;
  std::function<bool(const Sample&)> plan_again;  ///< for a sample of larger sizes; true: `shapes` changed
};

class TuneRun {
 public:
  explicit TuneRun(TuneTask task);
  ~TuneRun();
  TuneRun(const TuneRun&) = delete;
  TuneRun& operator=(const TuneRun&) = delete;

  TuneResult run();

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace leadline::jobs
