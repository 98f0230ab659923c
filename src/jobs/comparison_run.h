// SPDX-License-Identifier: Apache-2.0
// A float and a quantized model side by side, as a part of jobs: what it takes, and the loop over samples.
#pragma once

#include <functional>
#include <vector>

#include "jobs/job_budget.h"
#include "jobs/kept_samples.h"
#include "jobs/phase_memory.h"
#include "leadline/debugger.h"
#include "leadline/progress.h"
#include "leadline/sample_reader.h"

namespace leadline::jobs {

/// What comparing takes besides both models.
PhaseMemory comparison_memory(const Model& reference, const Model& quantized, const DebugOptions& options,
                              const std::vector<Shape>& shapes = {});

/// Runs all samples of `reader`, which are for one signature. When that is not the subgraph of `options`, what it takes
/// has to be admitted. `kept` gets samples, and what the float model makes of them. `before` sees each sample first.
QuantizationDebugger run_comparison(const Model& reference, const Model& quantized, DebugOptions options,
                                    SampleReader& reader, JobBudget& budget, const Progress& progress,
                                    KeptSamples* kept = nullptr, const std::function<void(const Sample&)>& before = {});

}  // namespace leadline::jobs
