// SPDX-License-Identifier: Apache-2.0
#include "leadline/quantize.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/boundary.h"
#include "core/error.h"
#include "jobs/calibration_run.h"
#include "jobs/equalized.h"
#include "jobs/sample_shapes.h"
#include "quantize/recipe.h"
#include "runtime/loaded_model.h"

namespace leadline {
namespace {

using jobs::PhaseMemory;

QuantizeOptions without_equalization(QuantizeOptions options) {
  options.equalize = false;
  return options;
}

}  // namespace

struct QuantizeJob::State {
  State(const Model& given, QuantizeOptions chosen) : model(given), options(std::move(chosen)) {
    if (options.equalize) equalized.emplace(model);
    planner.emplace(outline(), without_equalization(options));
    nodes = planner->nodes();
    needs_calibration = planner->needs_calibration() && options.calibration == nullptr;
    gram_matrices = planner->needs_gram_matrices();
    integers = options.ranges_only ||
               std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return is_integer(node.mode); });
  }

  const Model& outline() const { return equalized ? equalized->outline() : model; }
  /// Samples also fill in what the model does not bring along.
  bool calibrates(bool samples) const {
    return needs_calibration || (samples && integers && options.calibration == nullptr);
  }
  bool corrects_biases() const { return integers && options.bias_correction; }

  CalibrateOptions calibrate_options(std::shared_ptr<Budget> budget) const {
    CalibrateOptions result;
    result.num_threads = options.num_threads;
    result.budget = std::move(budget);
    result.histograms = needs_histograms(options.calibration_rule.method);
    result.keep_state = options.keep_state;
    result.gram_matrices = gram_matrices;
    return result;
  }

  JobPlan make_plan(bool samples) const {
    const ByteUnits units = jobs::units_of(options.budget, model);
    bool complete = true;
    PhaseMemory held = PhaseMemory::of(model);
    if (options.calibration) held.add(MemoryCategory::kStatistics, options.calibration->memory_bytes());
    std::vector<JobPhase> phases = {held.phase("load", "the file and its graph")};
    if (equalized && equalized->changed()) {
      const PhaseMemory result = equalized->result();
      phases.push_back(
          (held + equalized->peak())
              .phase("equalize", fmt::format("the model with even channels {}", format_bytes(result.total(), units))));
      held = held + result;
    }
    if (calibrates(samples)) {
      const jobs::CalibrationMemory memory =
          jobs::calibration_memory(outline(), calibrate_options(nullptr), units, shapes);
      phases.push_back((held + memory.peak).phase("calibrate", memory.detail));
      held = held + memory.result;
      complete = memory.complete;
    }
    if (corrects_biases()) {
      ChannelMeans means(outline(), options.num_threads);
      jobs::resize_inputs(means.interpreter(), shapes);
      const jobs::RunMemory run = jobs::run_memory(means.interpreter());
      held = held + run.bytes;  // until the biases are corrected
      phases.push_back(held.phase("correct_biases", fmt::format("run {}", format_bytes(run.bytes.total(), units))));
      complete = complete && run.complete;
    }
    const QuantizationPlan writing = planner->plan(options.calibration.get());
    held.add(MemoryCategory::kModelFile, writing.result_bytes + writing.extra_bytes);
    held.add(MemoryCategory::kGraph, writing.graph_bytes);
    phases.push_back(held.phase("quantize", fmt::format("result {}", format_bytes(writing.result_bytes, units))));
    return jobs::make_plan("quantize", std::move(phases), writing.result_bytes, complete, units);
  }

  const JobPlan& plan(const SampleSource* samples) {
    std::optional<JobPlan>& plan = planned[calibrates(samples != nullptr) ? 1 : 0];
    std::vector<Shape> sizes = jobs::shapes_from(model, samples);
    if (!plan || sizes != shapes) {
      shapes = std::move(sizes);
      planned = {};
      if (options.equalize && !equalized) equalized.emplace(model);  // a run took both
      if (!planner) planner.emplace(outline(), without_equalization(options));
      plan = make_plan(samples != nullptr);
    }
    return *plan;
  }

  /// Calls `write(quantizer, calibration, means)` when everything else is done.
  template <typename Write>
  QuantizeResult run(SampleSource* samples, const JobObserver& observer, const Write& write) {
    const bool calibrates = this->calibrates(samples != nullptr);
    if (samples == nullptr && (calibrates || corrects_biases())) refuse_without_samples();
    jobs::JobBudget budget(options.budget, {model});
    if (options.calibration) {
      budget.count_shared(options.calibration->memory_bytes(), MemoryCategory::kStatistics);
    }
    const int64_t sample_bytes = samples != nullptr && (calibrates || corrects_biases()) ? samples->peak_bytes() : 0;
    budget.admit(jobs::with_samples(plan(samples), sample_bytes));
    planner.reset();
    QuantizeResult result;
    result.unmatched_rules = unmatched_rules();
    Model source = model;
    if (options.equalize) {
      if (!equalized) equalized.emplace(model);  // a second run
      source = equalized->make(budget.own(), jobs::progress_of(observer, "equalize", "bytes"));
      equalized.reset();
    }
    budget.count_shared(sample_bytes, MemoryCategory::kInputsOutputs);
    std::optional<SampleReader> reader;
    if (samples != nullptr && (calibrates || corrects_biases())) {
      reader.emplace(source, *samples, SampleReaderOptions{.limit = options.max_samples});
    }
    std::optional<Calibration> calibration;
    if (calibrates) {
      Calibrator calibrator(source, calibrate_options(budget.own()));
      CalibrateResult found = jobs::run_calibration(calibrator, *reader, budget, observer);
      calibration = std::move(found.calibration);
    }
    budget.count_models();  // the calibrator's packed weights are gone
    std::optional<ChannelMeans> means;
    if (corrects_biases())
      run_means(means.emplace(source, options.num_threads, budget.own()), *reader, budget, observer);
    if (reader) {
      result.findings = reader->findings();
      result.samples = reader->count();
    }
    QuantizeOptions charged = without_equalization(options);
    charged.budget = budget.own();
    const Quantizer quantizer(source, std::move(charged));
    result.nodes = quantizer.nodes();
    write(result, quantizer, calibration ? &*calibration : options.calibration.get(), means ? &*means : nullptr,
          jobs::progress_of(observer, "quantize", "bytes"));
    budget.count_models();
    model.loaded()->require_intact();
    result.counted_peak_bytes = budget.peak();
    return result;
  }

  void run_means(ChannelMeans& means, SampleReader& reader, jobs::JobBudget& budget,
                 const JobObserver& observer) const {
    require(!calibrates(true) || reader.rewind(), ErrorCode::kInvalidArgument,
            "bias correction reads the samples twice, but these can be read only once");
    for_each_sample(reader, jobs::progress_of(observer, "correct_biases", "samples"), [&](const Sample& sample) {
      if (sample.subgraph != 0) return;
      set_inputs(means.interpreter(), sample);
      means.add_sample();
      budget.count_models();
    });
  }

  [[noreturn]] void refuse_without_samples() const {
    if (!needs_calibration) {
      fail(ErrorCode::kInvalidArgument, "bias correction needs samples of what the model will see");
    }
    if (gram_matrices) {
      fail(ErrorCode::kInvalidArgument, "rounding 'comq' needs samples of what the model will see");
    }
    if (!is_integer(options.mode)) {
      fail(ErrorCode::kInvalidArgument,
           "the recipe quantizes activations, which needs samples of what the model will see");
    }
    fail(ErrorCode::kInvalidArgument, "mode {} needs samples of what the model will see",
         quantization_mode_name(options.mode));
  }

  std::vector<RecipeRule> unmatched_rules() const {
    return quantize::Recipe(options.recipe).unmatched(*model.loaded()->graph());
  }

  Model model;
  QuantizeOptions options;
  std::optional<jobs::EqualizedForm> equalized;
  std::optional<Quantizer> planner;
  std::vector<QuantizedNode> nodes;
  bool integers = false;
  bool needs_calibration = false;
  bool gram_matrices = false;
  std::array<std::optional<JobPlan>, 2> planned;  // without and with calibration
  std::vector<Shape> shapes;                      // what they are for
};

QuantizeJob::QuantizeJob(const Model& model, QuantizeOptions options) try
    : state_(std::make_unique<State>(model, std::move(options))) {
} catch (...) {
  rethrow_as_error();
}
QuantizeJob::~QuantizeJob() = default;
QuantizeJob::QuantizeJob(QuantizeJob&&) noexcept = default;
QuantizeJob& QuantizeJob::operator=(QuantizeJob&&) noexcept = default;

bool QuantizeJob::needs_samples() const { return state_->needs_calibration || state_->corrects_biases(); }
bool QuantizeJob::needs_gram_matrices() const { return state_->gram_matrices; }
bool QuantizeJob::uses_samples() const { return state_->calibrates(true) || state_->corrects_biases(); }
std::vector<QuantizedNode> QuantizeJob::nodes() const try { return state_->nodes; } catch (...) {
  rethrow_as_error();
}
std::vector<RecipeRule> QuantizeJob::unmatched_rules() const try { return state_->unmatched_rules(); } catch (...) {
  rethrow_as_error();
}
JobPlan QuantizeJob::plan(const SampleSource* samples) const try {
  return jobs::with_samples(state_->plan(samples), samples != nullptr ? samples->peak_bytes() : 0);
} catch (...) {
  rethrow_as_error();
}

void QuantizeJob::admit(const SampleSource* samples) const try {
  jobs::JobBudget(state_->options.budget, {state_->model}).admit(plan(samples));
} catch (...) {
  rethrow_as_error();
}

QuantizeResult QuantizeJob::run_into(const Allocate& allocate, SampleSource* samples, const JobObserver& observer) try {
  return state_->run(samples, observer, [&](QuantizeResult& result, const Quantizer& quantizer, const auto&... data) {
    const auto counted = [&](int64_t bytes) {
      result.result_bytes = bytes;
      return allocate(bytes);
    };
    quantizer.quantize_into(counted, data...);
  });
} catch (...) {
  rethrow_as_error();
}

QuantizeResult QuantizeJob::run(SampleSource* samples, const JobObserver& observer) try {
  std::vector<std::byte> file;
  const auto allocate = [&](int64_t bytes) {
    file.resize(static_cast<size_t>(bytes));
    return std::span(file);
  };
  QuantizeResult result = run_into(allocate, samples, observer);
  result.file = std::move(file);
  return result;
} catch (...) {
  rethrow_as_error();
}

QuantizeResult QuantizeJob::run_to_model(SampleSource* samples, const JobObserver& observer) try {
  return state_->run(samples, observer, [&](QuantizeResult& result, const Quantizer& quantizer, const auto&... data) {
    result.model = quantizer.quantize_to_model(data...);
    result.result_bytes = result.model->file_bytes();
  });
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
