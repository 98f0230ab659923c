// SPDX-License-Identifier: Apache-2.0
// Advice that has been tried: changes to how a model is quantized, each made, quantized and measured.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "debug/effects.h"
#include "jobs/job_budget.h"
#include "jobs/kept_samples.h"
#include "jobs/output_run.h"
#include "jobs/phase_memory.h"
#include "leadline/debug_result.h"
#include "leadline/job_progress.h"
#include "leadline/model.h"
#include "leadline/quantizer.h"

namespace leadline::jobs {

/// Where nodes that are kept in float meet others a conversion is added to the file and the graph: for each value at
/// most this much.
inline constexpr int64_t kConversionBytes = 512;

/// How `quantized` was made of `reference`, as far as its file shows.
QuantizeOptions options_of(const Model& reference, const Model& quantized);

struct SuggestionTask {
  Model source;     ///< the float model, with even channels where `equalized`
  Model quantized;  ///< the given one
  QuantizeOptions made_with;
  bool equalized = false;
  const KeptSamples* samples = nullptr;
  const debug::Effects* effects = nullptr;
  OutputRunOptions given_run;  ///< how the given model runs
  JobBudget* budget = nullptr;
  JobObserver observer;
};

/// The one that helps most, for the smallest file, first. Each closes a tenth of the gap to the float model at least,
/// on samples that it was not chosen by. Fills in suggestions, how many changes were tried, and notes on what was not.
void find_suggestions(const SuggestionTask& task, DebugResult& result);

/// What finding them takes besides both models and the samples: a bound. `source` is an outline or the model.
PhaseMemory suggestion_memory(const Model& source, const QuantizeOptions& made_with, const std::vector<Shape>& shapes);

}  // namespace leadline::jobs
