// SPDX-License-Identifier: Apache-2.0
// The values of a float model's tensors over real samples: the ranges that integers will have to cover.
//
//   leadline::Calibrator calibrator(model);
//   leadline::Interpreter& interpreter = calibrator.interpreter();
//   for (const auto& sample : samples) {
//     interpreter.set_tensor(interpreter.inputs()[0], sample);
//     calibrator.add_sample();
//   }
//   const leadline::Calibration calibration = calibrator.calibration();
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leadline/budget.h"
#include "leadline/interpreter.h"
#include "leadline/model.h"
#include "leadline/names.h"

namespace leadline {

struct ValueRange {
  float min = 0.0F;
  float max = 0.0F;
};

/// What samples said about one tensor.
struct TensorCalibration {
  int subgraph = 0;
  int tensor = 0;
  std::string name;
  int64_t elements = 0;  ///< values seen, those that are not finite left out
  int64_t not_finite = 0;
  ValueRange range;  ///< of all finite values
};

/// Where NaN or infinity first came up: the first sample, and in it the tensor that was computed first.
struct NotFiniteValue {
  int64_t sample = 0;  ///< from 0
  int subgraph = 0;
  int tensor = 0;
};

/// Statistics of all float tensors; a value. Memory depends on the number of tensors, not of samples, and is charged as
/// MemoryCategory::kStatistics. Merging is exact: parts that were made apart and are merged in their order hold the
/// same numbers, and give the same bytes, as if made in one go.
class Calibration {
 public:
  /// Of no model and no samples.
  Calibration();
  Calibration(const Calibration&);
  Calibration& operator=(const Calibration&);
  /// What was moved from may only be assigned to or destroyed.
  Calibration(Calibration&&) noexcept;
  Calibration& operator=(Calibration&&) noexcept;
  ~Calibration();

  /// Adds samples that come after those of this one. Throws Error(kInvalidArgument), and changes nothing, when they are
  /// of another model. One of no model takes the other's.
  void merge(const Calibration& later);
  int64_t samples() const;
  /// Whether it was made from this model: same structure, names and (as far as looked at) weights.
  bool is_of(const Model& model) const;
  /// Whether it has the histograms that every method but kMinMax and kMovingAverage needs.
  bool histograms() const;
  /// Whether it has the Gram matrices that WeightRounding::kComq needs.
  bool gram_matrices() const;
  /// By subgraph and tensor; also tensors that no sample reached (`elements` is 0 then).
  std::vector<TensorCalibration> tensors() const;
  /// The range of a tensor; nothing when no sample gave it a finite value. Lies inside of what was seen, and need not
  /// hold zero. `bits` (8 or 16) matters to kMse and kKl; `symmetric`: the range will be used as [-m, m].
  /// Throws Error(kInvalidArgument) for a rule that makes no sense or needs histograms that are not there.
  std::optional<ValueRange> range(int subgraph, int tensor, const CalibrationRule& rule, int bits,
                                  bool symmetric) const;
  /// Memory this value takes, as charged.
  int64_t memory_bytes() const;

  /// To and from bytes, to be kept or sent between processes. `budget` is charged for the result; null means
  /// Budget::machine_default(). Throws Error(kInvalidArgument) for other bytes; BudgetError.
  std::vector<std::byte> to_bytes() const;
  static Calibration from_bytes(std::span<const std::byte> bytes, std::shared_ptr<Budget> budget = nullptr);

  struct Data;
  const Data& data() const { return *data_; }
  explicit Calibration(std::unique_ptr<Data> data);

 private:
  std::unique_ptr<Data> data_;
};

/// The ranges that the file of a model has for its tensors (QuantizeOptions::ranges_only writes them, and TensorFlow's
/// converter when it only calibrates), as if one sample had said them; it is a calibration of that model. Null means
/// the budget of the model. Throws Error(kInvalidArgument) when no tensor has a range.
Calibration calibration_of(const Model& calibrated_model, std::shared_ptr<Budget> budget = nullptr);

struct CalibrateOptions {
  int num_threads = 1;
  std::shared_ptr<Budget> budget;  ///< null: the model's
  /// Keep histograms, which every method but kMinMax and kMovingAverage needs.
  bool histograms = true;
  /// Keep a Gram matrix for each layer: sums of products of what its weights are multiplied with, which
  /// WeightRounding::kComq needs. 24 bytes for each pair of weights of an output channel while samples run, 16 after.
  bool gram_matrices = false;
  /// Variables keep their values from sample to sample: the samples are one stream. Otherwise each sample begins with
  /// the model's initial state, so that the order and the splitting of samples do not matter.
  bool keep_state = false;
  int64_t max_samples = 0;  ///< use at most this many; 0: all
};

/// Runs a float model and watches its tensors, one node at a time: no activations are kept. Watched are the float
/// inputs of subgraphs, the float outputs of nodes (also in the bodies of IF and WHILE) and float variables. Results of
/// constants alone have no samples, and neither have inputs of a body that no node in it reads. Not thread-safe.
class Calibrator {
 public:
  /// Plans; takes no memory that grows with the model before the first sample.
  explicit Calibrator(const Model& model, CalibrateOptions options = {});
  ~Calibrator();
  Calibrator(Calibrator&&) noexcept;
  Calibrator& operator=(Calibrator&&) noexcept;

  const Model& model() const;
  /// To resize the inputs of a subgraph (a signature's) and set their values. Made at the first call; all share state.
  Interpreter& interpreter(int subgraph = 0);
  /// Runs the interpreter and records. A run that throws leaves no trace in the statistics.
  void add_sample(int subgraph = 0);
  Calibration calibration() const;
  /// Where a sample first had NaN or infinity, since the beginning or clear(); such values are in no range.
  std::optional<NotFiniteValue> first_not_finite() const;
  /// Forgets all samples and the state of variables, keeps interpreters and their inputs.
  void clear();
  /// Bytes the statistics take besides the interpreters, known from the start; charged to the budget as
  /// MemoryCategory::kStatistics from the first sample on.
  int64_t statistics_bytes() const;
  /// The same of what calibration() returns.
  int64_t calibration_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leadline
