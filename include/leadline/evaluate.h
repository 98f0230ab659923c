// SPDX-License-Identifier: Apache-2.0
// The job that runs a model over a set of samples and says how good its answers are.
//
//   leadline::EvaluateJob job(model, {.metric = leadline::Metric::kAccuracy, .num_threads = 4});
//   std::cout << job.plan(samples.get()).to_text();
//   const leadline::EvaluateResult result = job.run(*samples);
//   std::cout << result.value;
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leadline/budget.h"
#include "leadline/job_plan.h"
#include "leadline/job_progress.h"
#include "leadline/model.h"
#include "leadline/sample_reader.h"
#include "leadline/samples.h"

namespace leadline {

/// What is measured, as the mean over all samples. Integer outputs count as the real values they stand for.
enum class Metric {
  kAccuracy,           ///< share of labels that are among the top answers
  kMeanSquaredError,   ///< against the expected outputs, or those of the reference model
  kMeanAbsoluteError,  ///< likewise
  kCosine,             ///< cosine of the angle to them: 1 is best
  kAgreement,          ///< share of samples with the same top answer as the reference model
  kFunction,           ///< what the caller's function returns
};
/// "accuracy", "mse", "mae", "cosine", "agreement", "function".
const char* metric_name(Metric metric) noexcept;
/// Throws Error(kInvalidArgument) that lists the names.
Metric parse_metric(std::string_view name);

/// What the caller's own metric is given. It is called for one sample at a time.
struct EvaluatedSample {
  int64_t index = 0;                       ///< number of the sample, from 0
  std::span<const SampleTensor> outputs;   ///< of the model, in their order and types
  std::span<const SampleTensor> targets;   ///< of the sample
  std::span<const SampleTensor> expected;  ///< outputs of the reference model; empty: there is none
};

struct EvaluateOptions {
  Metric metric = Metric::kAccuracy;
  int top_k = 1;                        ///< for kAccuracy: the label may be any of this many top answers
  int output = 0;                       ///< position of the output that is judged
  std::optional<Model> reference = {};  ///< the model to compare with
  std::function<double(const EvaluatedSample&)> function = {};  ///< for kFunction
  int num_threads = 1;                  ///< samples that run at the same time; -1: as many as CPUs are usable
  int64_t max_samples = 0;              ///< 0: all
  bool per_sample = false;              ///< keep the value of each sample, 8 bytes each
  int64_t max_confusion_classes = 256;  ///< keep the table of answers for at most this many classes; 0: no table
  std::shared_ptr<Budget> budget = {};  ///< null: the model's
};

/// What one sample came to.
struct SampleScore {
  double value = 0;
  /// Label and top answer of each row of kAccuracy; reference's and model's of kAgreement.
  std::vector<std::pair<int64_t, int64_t>> answers;
  int64_t correct = 0;  ///< of them
};

struct EvaluateResult {
  Metric metric = Metric::kAccuracy;
  int top_k = 1;
  double value = 0;  ///< the mean
  int64_t samples = 0;
  int64_t answers = 0;  ///< of kAccuracy and kAgreement: labels that were compared
  int64_t correct = 0;  ///< of them
  int64_t classes = 0;  ///< rows of `confusion`; 0: there is none
  /// Answers by label: confusion[label * classes + answer]. For at most max_confusion_classes.
  std::vector<int64_t> confusion;
  std::vector<double> per_sample;
  std::vector<SampleFinding> findings;  ///< about the samples
  double seconds = 0;
  int64_t counted_peak_bytes = 0;        ///< of what the job was charged, the models and samples included
  ByteUnits units = ByteUnits::kBinary;  ///< of sizes in texts: those of the budget

  std::string to_text() const;
  std::string to_json() const;
};

/// Runs single samples and scores them: what a worker of a cluster does. Not thread-safe.
class Evaluator {
 public:
  /// Plans; takes no memory that grows with the model before the first sample.
  Evaluator(const Model& model, EvaluateOptions options);
  ~Evaluator();
  Evaluator(Evaluator&&) noexcept;
  Evaluator& operator=(Evaluator&&) noexcept;

  /// Puts a sample of a SampleReader into the model (and the reference model). It is not needed any more then.
  void set_sample(const Sample& sample);
  /// Runs it. `check` may end the run by throwing.
  SampleScore run(int64_t index, const RunCheck& check = {});

 private:
  friend class EvaluateJob;
  struct State;
  std::unique_ptr<State> state_;
};

/// Sums up scores, which have to come in the order of the samples: the result is the same to the last bit then,
/// wherever they ran.
class ScoreSum {
 public:
  explicit ScoreSum(const EvaluateOptions& options);
  void add(const SampleScore& score);
  int64_t samples() const { return result_.samples; }
  /// The result so far, without seconds, memory and findings.
  EvaluateResult result() const;

 private:
  EvaluateResult result_;
  double sum_ = 0;
  bool per_sample_ = false;
  int64_t max_confusion_classes_ = 0;
  bool counts_answers_ = true;
};

/// Runs all samples, on several threads if asked for. Results do not depend on the number of threads.
class EvaluateJob {
 public:
  /// Throws Error(kInvalidArgument) for options that do not fit each other or the model.
  explicit EvaluateJob(const Model& model, EvaluateOptions options = {});
  ~EvaluateJob();
  EvaluateJob(EvaluateJob&&) noexcept;
  EvaluateJob& operator=(EvaluateJob&&) noexcept;

  /// For the shapes of the model. `samples`: what they take besides; null: memory of the caller.
  JobPlan plan(const SampleSource* samples = nullptr) const;
  /// Throws BudgetError with the plan when it does not fit the budget.
  void admit(const SampleSource* samples = nullptr) const;
  /// Calls admit() before the first sample is read. `observer` is called on
  /// the calling thread.
  EvaluateResult run(SampleSource& samples, const JobObserver& observer = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leadline
