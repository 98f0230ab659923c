// SPDX-License-Identifier: Apache-2.0
// The job that searches the smallest set of nodes to keep out of quantization so that a metric reaches its target.
//
//   leadline::TuneOptions options;
//   options.target = 0.999;  // cosine between the outputs of both models
//   leadline::TuneJob job(model, options);
//   std::cout << job.plan().to_text();
//   const leadline::TuneResult result = job.run({.calibration = samples.get()});
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leadline/debug_result.h"
#include "leadline/job_plan.h"
#include "leadline/job_progress.h"
#include "leadline/model.h"
#include "leadline/quantize.h"
#include "leadline/recipe.h"
#include "leadline/sample_reader.h"
#include "leadline/samples.h"

namespace leadline {

/// One quantized model that was measured.
struct TuneTrial {
  std::vector<std::string> kept;
  double value = 0.0;
  int64_t file_bytes = 0;
  double seconds = 0.0;                              ///< CPU time of a run; 0: not measured
  QuantizationMode keep = QuantizationMode::kFloat;  ///< what became of the kept nodes

  std::vector<RecipeRule> recipe() const;
};

/// What bounds hold with.
inline constexpr double kTuneConfidence = 0.95;

/// What samples say that took no part in calibrating, ordering and searching.
struct TuneBound {
  int64_t samples = 0;
  double value = 0.0;   ///< of the metric, on them
  double lowest = 0.0;  ///< of the worst of them; of metrics that count answers: what holds for all samples like them
  /// With kTuneConfidence at least this share of samples like them has `lowest` or more, whatever the distribution; 0
  /// for metrics that count answers.
  double share = 0.0;

  std::string text(const std::string& metric) const;
};

/// What a quantized file is worth; larger is better.
using TuneFunction = std::function<double(std::span<const std::byte> file)>;

struct TuneOptions {
  /// How nodes are quantized that are not kept. Its recipe and calibration are the job's own: they must be empty.
  QuantizeOptions quantize;
  QuantizationMode keep = QuantizationMode::kFloat;  ///< what becomes of the nodes that are kept
  double target = 0.99;
  int max_trials = 64;
  /// Search no longer than this and take the best of what was found; 0: as long as it takes. One trial that has begun
  /// ends.
  double max_seconds = 0.0;
  /// Hold out this share of the samples to prove the result on, where they are 8 at least and TuneSamples has none for
  /// it; 0: prove nothing. Nothing is held out for a function.
  double held_out = 0.25;
  /// Measure so many models beside those of the search, for `front`. None for a function, whose trials may be long.
  int front_trials = 4;
  TuneMetric metric = TuneMetric::kCosine;         ///< what samples are measured by
  TuneFunction function;                           ///< instead of `metric`
  std::function<void(const TuneTrial&)> on_trial;  ///< called after each
};

struct TuneSamples {
  SampleSource* calibration = nullptr;  ///< for modes that need it, and for what is null below; read more than once
  SampleSource* debug = nullptr;        ///< to order the layers by
  SampleSource* metric = nullptr;       ///< to measure the metric on; with labels for TuneMetric::kAccuracy
  SampleSource* held_out = nullptr;     ///< to prove the result on; null: a share of the others
};

struct TuneResult {
  std::vector<std::byte> file;  ///< the quantized model; empty where the caller passed its memory
  std::vector<RecipeRule> recipe;
  std::vector<std::string> kept;    ///< names of the tensors whose nodes are not quantized as the others
  std::vector<std::string> causes;  ///< those of them that read from no other: the layers to look at
  double value = 0.0;               ///< of the metric
  double target = 0.0;
  /// By `value` and, where samples were held out, on those too.
  bool reached = false;
  std::optional<TuneBound> bound;  ///< absent: nothing was held out
  /// Trials than which no other is better in one of value, size and time and as good in the others; the smallest first.
  std::vector<TuneTrial> front;
  int64_t float_bytes = 0;         ///< of the float model's file
  double float_seconds = 0.0;      ///< CPU time of a run of it; 0: not measured
  std::vector<std::string> notes;  ///< what makes the result less than it seems, such as a float model that is smaller
  std::vector<TuneTrial> trials;
  std::optional<DebugResult> debug;  ///< of the model with everything quantized, where that was not enough
  std::vector<SampleFinding> findings;
  int64_t counted_peak_bytes = 0;  ///< of what the job was charged, the model included
};

/// First the parts of the network that cost most at its outputs are kept, without what is not needed of them. If they
/// are not enough, the layer that loses most signal by itself is kept alone, then with the nodes that read it, those
/// that read them and so on (4 steps): weights that spoil a layer are cured by keeping that layer, but a range that is
/// too wide for 8 bits travels on, and whatever rounds to it has to be kept too. If that is not enough, layers are
/// taken in the order of the signal they lose, and how many are needed is found by bisection. In the end each kept node
/// is given back if the target holds without it. No set is proven to be the smallest: that would take 2^layers trials.
/// What is found is measured on samples that were held out; when it misses the target there, the search goes on with a
/// harder one.
class TuneJob {
 public:
  explicit TuneJob(const Model& model, TuneOptions options = {});
  ~TuneJob();
  TuneJob(TuneJob&&) noexcept;
  TuneJob& operator=(TuneJob&&) noexcept;

  /// For the shapes of the model and for every set of kept nodes: files and runs of trials are bounds. What a function
  /// of the caller takes is not part of it.
  JobPlan plan(const TuneSamples& samples = {}) const;
  /// Throws BudgetError with the plan when it does not fit the budget; run() begins with it.
  void admit(const TuneSamples& samples = {}) const;
  /// `allocate`: where trials are written, instead of memory of the job; what it returned last is the result. Throws
  /// BudgetError with the plan, before the first sample is read, when it does not fit.
  TuneResult run(const TuneSamples& samples, const JobObserver& observer = {},
                 const QuantizeJob::Allocate& allocate = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leadline
