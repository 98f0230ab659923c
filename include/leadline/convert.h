// SPDX-License-Identifier: Apache-2.0
// The job that makes a .tflite file of what Keras or TensorFlow saved.
//
//   leadline::ConvertJob job("model.keras");
//   std::cout << job.plan().to_text();
//   job.run_to_file("model.tflite");
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leadline/budget.h"
#include "leadline/converter.h"
#include "leadline/job_plan.h"
#include "leadline/job_progress.h"
#include "leadline/model.h"

namespace leadline {

struct ConvertOptions {
  std::vector<std::string> signature_keys = {};  ///< of a SavedModel; empty: all
  std::vector<std::string> tags = {};            ///< of a SavedModel; empty: "serve"
  ConversionOptions conversion = {};
  std::shared_ptr<Budget> budget = {};  ///< null: Budget::machine_default()
};

struct ConvertResult {
  std::vector<std::byte> file;     ///< of run()
  std::optional<Model> model;      ///< of run_to_model()
  int64_t result_bytes = 0;        ///< of the .tflite file
  int64_t counted_peak_bytes = 0;  ///< of what the job was charged
};

/// Reads, simplifies and writes a model; weights stream from one file to the other.
class ConvertJob {
 public:
  /// A .keras file, a whole-model .h5 file, or the directory of a SavedModel. Reads the model, but not its weights.
  /// Throws as Converter::from_keras() and from_saved_model(); Error(kInvalidArgument) for options of SavedModels when
  /// it is not one.
  explicit ConvertJob(const std::string& path, ConvertOptions options = {});
  ~ConvertJob();
  ConvertJob(ConvertJob&&) noexcept;
  ConvertJob& operator=(ConvertJob&&) noexcept;

  /// What was read.
  const Converter& converter() const;
  /// "read" was taken already.
  JobPlan plan(ConvertTarget target = ConvertTarget::kFile) const;
  /// Throws BudgetError with the plan when it does not fit the budget; runs begin with it.
  void admit(ConvertTarget target = ConvertTarget::kFile) const;

  /// Into a file, which appears whole or not at all. Throws Error(kIo) too.
  ConvertResult run_to_file(const std::string& path, const JobObserver& observer = {});
  /// The file in memory.
  ConvertResult run(const JobObserver& observer = {});
  /// The same as a model to run, in memory of its own that is charged to the options' budget.
  ConvertResult run_to_model(const JobObserver& observer = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leadline
