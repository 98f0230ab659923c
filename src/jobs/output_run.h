// SPDX-License-Identifier: Apache-2.0
// What a model's outputs are worth against the float model's, on kept samples.
#pragma once

#include <memory>
#include <vector>

#include "jobs/kept_samples.h"
#include "leadline/budget.h"
#include "leadline/debug_result.h"
#include "leadline/model.h"

namespace leadline::jobs {

struct OutputRunOptions {
  int num_threads = 1;
  std::shared_ptr<Budget> budget;
  int subgraph = 0;
  bool timed = false;       ///< run more often, until `seconds` of the result can be compared with another's
  std::vector<int> inputs;  ///< by input of the float model: position among the model's; empty: the same
  std::vector<int>
      outputs;  ///< by output of the float model: position among the model's, -1: not compared; empty: the same
  std::vector<DebugMeasure>* each = nullptr;  ///< also one for each sample, without file and time
};

/// Runs `model` on them. `file_bytes` of the result is the model's.
DebugMeasure measure_outputs(const Model& model, const std::vector<const KeptSamples::Kept*>& samples,
                             const OutputRunOptions& options);

}  // namespace leadline::jobs
