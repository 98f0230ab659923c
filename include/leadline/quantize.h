// SPDX-License-Identifier: Apache-2.0
// The job that makes a quantized .tflite file of a float model, after training.
//
//   leadline::QuantizeJob job(model, {.mode = leadline::QuantizationMode::kInt8});
//   std::cout << job.plan().to_text();
//   const std::vector<std::byte> file = job.run(samples.get()).file;
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "leadline/job_plan.h"
#include "leadline/job_progress.h"
#include "leadline/model.h"
#include "leadline/quantizer.h"
#include "leadline/sample_reader.h"
#include "leadline/samples.h"

namespace leadline {

struct QuantizeResult {
  std::vector<std::byte> file;  ///< of run()
  std::optional<Model> model;   ///< of run_to_model()
  int64_t result_bytes = 0;     ///< of the file
  std::vector<QuantizedNode> nodes;
  int64_t samples = 0;                      ///< that were run
  std::vector<SampleFinding> findings;      ///< about the samples
  std::vector<RecipeRule> unmatched_rules;  ///< of the recipe: they match no node and have no effect
  int64_t counted_peak_bytes = 0;           ///< of what the job was charged, the model included
};

/// Equalizes, calibrates, corrects biases and quantizes, as far as the options ask for it.
class QuantizeJob {
 public:
  /// Reads nothing but small constants. Throws Error(kUnsupported) for a model that is quantized already, and when
  /// integers are required of nodes that have no integer form; Error(kInvalidArgument) for options that contradict each
  /// other.
  explicit QuantizeJob(const Model& model, QuantizeOptions options = {});
  ~QuantizeJob();
  QuantizeJob(QuantizeJob&&) noexcept;
  QuantizeJob& operator=(QuantizeJob&&) noexcept;

  /// Whether run() has to be given samples: some node gets integer activations, and there is no calibration, nor does
  /// the model bring ranges along (Quantizer::needs_calibration()); or weights are rounded by what samples say.
  bool needs_samples() const;
  /// Whether a calibration that is given instead of samples has to have Gram matrices.
  bool needs_gram_matrices() const;
  /// Whether run() reads samples that it is given.
  bool uses_samples() const;
  /// Every node of the float model and what will become of it, as far as that is known without samples.
  std::vector<QuantizedNode> nodes() const;
  /// Rules of the recipe that match no node.
  std::vector<RecipeRule> unmatched_rules() const;
  /// For the shapes of the model; samples of other shapes are planned when they come, inside the budget.
  JobPlan plan(const SampleSource* samples = nullptr) const;
  /// Throws BudgetError with the plan when it does not fit the budget; run() begins with it.
  void admit(const SampleSource* samples = nullptr) const;

  /// The quantized file. Throws BudgetError with the plan, before the first sample is read, when it does not fit.
  QuantizeResult run(SampleSource* samples = nullptr, const JobObserver& observer = {});
  /// The same into memory that `allocate` returns, of exactly the bytes it is asked for.
  using Allocate = std::function<std::span<std::byte>(int64_t bytes)>;
  QuantizeResult run_into(const Allocate& allocate, SampleSource* samples = nullptr, const JobObserver& observer = {});
  /// The same as a model to run, in memory of its own that is charged to the options' budget.
  QuantizeResult run_to_model(SampleSource* samples = nullptr, const JobObserver& observer = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The float model with even channels that `equalize` quantizes instead of `model`: it computes the same. `model`
/// itself when there is nothing to even out.
Model equalized_model(const Model& model, const std::shared_ptr<Budget>& budget = nullptr);

}  // namespace leadline
