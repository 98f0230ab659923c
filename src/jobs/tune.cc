// SPDX-License-Identifier: Apache-2.0
#include "leadline/tune.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/boundary.h"
#include "core/charge.h"
#include "core/error.h"
#include "jobs/calibration_run.h"
#include "jobs/comparison_run.h"
#include "jobs/debug_effects.h"
#include "jobs/equalized.h"
#include "jobs/evaluator_memory.h"
#include "jobs/sample_shapes.h"
#include "jobs/tune_run.h"
#include "runtime/loaded_model.h"

namespace leadline {
namespace {

using jobs::PhaseMemory;

/// Where a kept node meets others a conversion is added to the file and the graph: a node, and a tensor whose name is
/// that of another and a suffix.
constexpr int64_t kConversionBytes = 512;

/// What all sources hold.
int64_t peak_bytes_of(const TuneSamples& samples) {
  int64_t bytes = 0;
  for (const SampleSource* one : {samples.calibration, samples.debug, samples.metric, samples.held_out}) {
    bytes += one != nullptr ? one->peak_bytes() : 0;
  }
  return bytes;
}

}  // namespace

struct TuneJob::State {
  State(const Model& given, TuneOptions chosen) : model(given), options(std::move(chosen)) {
    require(options.quantize.recipe.empty() && !options.quantize.calibration, ErrorCode::kInvalidArgument,
            "tune makes recipe and calibration itself");
    require(!options.quantize.bias_correction, ErrorCode::kInvalidArgument,
            "tune does not correct biases; quantize with its recipe and bias_correction afterwards");
    require(options.held_out >= 0.0 && options.held_out <= 0.5, ErrorCode::kInvalidArgument,
            "held_out is {}, expected a share of 0 to 0.5", options.held_out);
    require(options.max_seconds >= 0.0, ErrorCode::kInvalidArgument, "max_seconds is {}, expected at least 0",
            options.max_seconds);
    require(options.max_trials >= 1, ErrorCode::kInvalidArgument, "max_trials is {}, expected at least 1",
            options.max_trials);
    if (options.quantize.equalize) equalized.emplace(model);
    plan_with({});
  }

  /// Plans for inputs of these shapes, where the model leaves sizes open; empty: those of its file.
  void plan_with(std::vector<Shape> sizes) {
    if (planned && sizes == shapes) return;
    if (options.quantize.equalize && !equalized) equalized.emplace(model);  // a run took it
    shapes = std::move(sizes);
    planned = make_plan();
  }

  const Model& outline() const { return equalized ? equalized->outline() : model; }
  bool measures_accuracy() const { return jobs::measures_accuracy(options); }
  bool calibrates() const { return jobs::calibrates(options); }

  /// The quantizer of all nodes in one mode.
  Quantizer quantizer_of(QuantizationMode mode) const {
    QuantizeOptions all = options.quantize;
    all.mode = mode;
    all.equalize = false;
    if (!is_integer(mode)) all.input_type = all.output_type = DType::kFloat32;
    return Quantizer(outline(), std::move(all));
  }

  /// Of all sources together, where they are known.
  std::vector<Shape> shapes_of(const TuneSamples& samples) const {
    std::vector<Shape> largest;
    for (const SampleSource* one : {samples.calibration, samples.debug, samples.metric, samples.held_out}) {
      largest = jobs::largest_shapes(largest, jobs::shapes_from(model, one));
    }
    return largest;
  }

  JobPlan make_plan() const {
    const ByteUnits units = jobs::units_of(options.quantize.budget, model);
    bool complete = true;
    PhaseMemory held = PhaseMemory::of(model);
    std::vector<JobPhase> phases = {held.phase("load", "the file and its graph")};
    if (equalized && equalized->changed()) {
      const PhaseMemory result = equalized->result();
      phases.push_back(
          (held + equalized->peak())
              .phase("equalize", fmt::format("the model with even channels {}", format_bytes(result.total(), units))));
      held = held + result;
    }
    if (calibrates()) {
      const jobs::CalibrationMemory memory =
          jobs::calibration_memory(outline(), jobs::calibrate_options(options, nullptr), units, shapes);
      phases.push_back((held + memory.peak).phase("calibrate", memory.detail));
      held = held + memory.result;
      complete = memory.complete;
    }
    // Whatever is kept: a file has at most what the file of quantized and the file of kept nodes have together.
    const Quantizer quantizer = quantizer_of(options.quantize.mode);
    const Model quantized = quantizer.outline();
    const jobs::DebugEffects effects(outline(), quantized, jobs::effect_options(options.quantize), shapes);
    if (!options.function && effects.sample_bytes() > 0) {
      InterpreterOptions how;
      how.budget = Budget::with_limit(std::numeric_limits<int64_t>::max(), units);
      how.num_threads = options.quantize.num_threads;
      how.disabled_passes = {"all"};  // what they change would stay with the model
      Interpreter runs_float(outline(), how);
      jobs::resize_inputs(runs_float, shapes);
      held.add(MemoryCategory::kInputsOutputs, effects.sample_bytes());
      phases.push_back((held + jobs::run_memory(runs_float).bytes)
                           .phase("hold out", fmt::format("samples to prove the result on {}",
                                                          format_bytes(effects.sample_bytes(), units))));
    }
    const bool keeps_float = options.keep == QuantizationMode::kFloat;
    const Model kept = keeps_float ? outline() : quantizer_of(options.keep).outline();
    const int64_t conversions = kConversionBytes * values_of(quantized);
    PhaseMemory trial = held + PhaseMemory::of(quantized) + PhaseMemory::of(kept);
    trial.add(MemoryCategory::kModelFile, conversions).add(MemoryCategory::kGraph, conversions);
    const int64_t file_bytes = quantized.file_bytes() + kept.file_bytes() + conversions;
    PhaseMemory measuring = trial;
    if (measures_accuracy()) {
      measuring = measuring + evaluation_memory(quantized, shapes) + evaluation_memory(kept, shapes);
    } else if (!options.function) {
      const DebugOptions compares = jobs::agreement_options(options.quantize);
      measuring = measuring + jobs::comparison_memory(outline(), quantized, compares, shapes) +
                  jobs::comparison_memory(outline(), kept, compares, shapes);
    }
    trial.add(MemoryCategory::kModelFile, quantizer.plan().extra_bytes);
    phases.push_back((measuring.total() > trial.total() ? measuring : trial)
                         .phase("trial", fmt::format("a file of at most {}", format_bytes(file_bytes, units))));
    const PhaseMemory orders =
        jobs::comparison_memory(outline(), quantized, jobs::ordering_options(options.quantize), shapes);
    held.add(MemoryCategory::kInputsOutputs, effects.sample_bytes());
    phases.push_back(
        (held + PhaseMemory::of(quantized) + orders)
            .phase("order", fmt::format("all layers side by side {}", format_bytes(orders.total(), units))));
    if (effects.effect_memory()) {
      phases.push_back(
          (held + PhaseMemory::of(quantized) + *effects.effect_memory())
              .phase("effects", fmt::format("samples that are kept {}", format_bytes(effects.sample_bytes(), units))));
    }
    return jobs::make_plan("tune", std::move(phases), file_bytes, complete, units);
  }

  static PhaseMemory evaluation_memory(const Model& model, const std::vector<Shape>& shapes) {
    const jobs::EvaluatorMemory memory = jobs::evaluator_memory(model, {}, shapes);
    return memory.shared + memory.own - PhaseMemory::of(model);
  }

  static int64_t values_of(const Model& model) {
    int64_t values = 0;
    for (const ir::Subgraph& subgraph : model.loaded()->graph()->subgraphs) {
      values += static_cast<int64_t>(subgraph.values.size());
    }
    return values;
  }

  TuneResult run(const TuneSamples& samples, const JobObserver& observer, const QuantizeJob::Allocate& allocate) {
    jobs::JobBudget budget(options.quantize.budget, {model});
    const int64_t sample_bytes = peak_bytes_of(samples);
    const bool open = jobs::leaves_sizes_open(model, 0);
    plan_with(shapes_of(samples));
    budget.admit(jobs::with_samples(*planned, sample_bytes));
    Model source = model;
    if (options.quantize.equalize) {
      if (!equalized) equalized.emplace(model);  // a second run
      source = equalized->make(budget.own(), jobs::progress_of(observer, "equalize", "bytes"));
      if (!open) equalized.reset();
    }
    budget.count_shared(sample_bytes, MemoryCategory::kInputsOutputs);
    // Sizes that were not known, or larger than those that were.
    const auto plan_again = [&](const Sample& sample) {
      std::vector<Shape> largest = jobs::largest_shapes(shapes, jobs::shapes_of(sample));
      if (!open || largest == shapes) return false;
      plan_with(std::move(largest));
      budget.admit_again(jobs::with_samples(*planned, sample_bytes));
      return true;
    };
    TuneResult result = jobs::TuneRun({source, options, samples, shapes, budget, observer, allocate, plan_again}).run();
    model.loaded()->require_intact();
    return result;
  }

  Model model;
  TuneOptions options;
  std::optional<jobs::EqualizedForm> equalized;
  std::optional<JobPlan> planned;
  std::vector<Shape> shapes;  // what was planned for
};

TuneJob::TuneJob(const Model& model, TuneOptions options) try
    : state_(std::make_unique<State>(model, std::move(options))) {
} catch (...) {
  rethrow_as_error();
}
TuneJob::~TuneJob() = default;
TuneJob::TuneJob(TuneJob&&) noexcept = default;
TuneJob& TuneJob::operator=(TuneJob&&) noexcept = default;

JobPlan TuneJob::plan(const TuneSamples& samples) const try {
  state_->plan_with(state_->shapes_of(samples));
  return jobs::with_samples(*state_->planned, peak_bytes_of(samples));
} catch (...) {
  rethrow_as_error();
}

void TuneJob::admit(const TuneSamples& samples) const try {
  jobs::JobBudget(state_->options.quantize.budget, {state_->model}).admit(plan(samples));
} catch (...) {
  rethrow_as_error();
}

TuneResult TuneJob::run(const TuneSamples& samples, const JobObserver& observer,
                        const QuantizeJob::Allocate& allocate) try {
  return state_->run(samples, observer, allocate);
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
