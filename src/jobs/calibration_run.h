// SPDX-License-Identifier: Apache-2.0
// Calibration as a part of jobs: what it takes, and the loop over samples.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jobs/job_budget.h"
#include "jobs/phase_memory.h"
#include "leadline/calibrate.h"

namespace leadline::jobs {

/// What calibrating takes besides the model.
struct CalibrationMemory {
  PhaseMemory peak;
  PhaseMemory result;  ///< what stays: the Calibration
  std::string detail;
  bool complete = true;
};

/// With an interpreter for each signature, since samples may come for all of them. `shapes`: of the main
/// subgraph's inputs, where the model leaves sizes open and samples say them.
CalibrationMemory calibration_memory(const Model& model, const CalibrateOptions& options, ByteUnits units,
                                     const std::vector<Shape>& shapes = {});

/// Runs all samples of `reader` through `calibrator`.
CalibrateResult run_calibration(Calibrator& calibrator, SampleReader& reader, JobBudget& budget,
                                const JobObserver& observer);

/// Reports one phase to `observer`.
Progress progress_of(const JobObserver& observer, std::string_view phase, std::string_view unit);

}  // namespace leadline::jobs
