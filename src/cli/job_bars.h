// SPDX-License-Identifier: Apache-2.0
// Progress bars for the phases of a job, and Ctrl-C between its steps.
#pragma once

#include <optional>
#include <string>

#include "cli/progress.h"
#include "leadline/job_progress.h"

namespace leadline::cli {

/// Lives as long as the job runs.
class JobBars {
 public:
  /// To be handed to the job's run().
  JobObserver observer() {
    return [this](const JobProgress& progress) { return show(progress); };
  }

 private:
  bool show(const JobProgress& progress) {
    if (phase_ != progress.phase) {
      phase_ = progress.phase;
      bar_.reset();
      bar_.emplace(phase_);
    }
    bar_->update(progress.done, progress.total);
    return !StopOnSignal::stopped();
  }

  StopOnSignal stop_;
  std::string phase_;
  std::optional<ProgressBar> bar_;
};

}  // namespace leadline::cli
