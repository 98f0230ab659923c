// SPDX-License-Identifier: Apache-2.0
// What evaluating takes, before it is taken.
#pragma once

#include <vector>

#include "jobs/phase_memory.h"
#include "leadline/evaluate.h"
#include "leadline/model.h"

namespace leadline::jobs {

struct EvaluatorMemory {
  PhaseMemory shared;  ///< by all Evaluators of a model: files, graphs, packed weights
  PhaseMemory own;     ///< of one Evaluator
  bool complete = true;
};
EvaluatorMemory evaluator_memory(const Model& model, const EvaluateOptions& options,
                                 const std::vector<Shape>& shapes = {});

}  // namespace leadline::jobs
