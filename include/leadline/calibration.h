// SPDX-License-Identifier: Apache-2.0
// What the tensors of a float model hold when it runs on real samples: the ranges that integers will have to cover.
//
//   leadline::Calibrator calibrator(model);
//   for (const auto& sample : samples) {
//     calibrator.interpreter().set_tensor(input, sample);
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

namespace leadline {

/// How a range is chosen from what was seen.
enum class CalibrationMethod {
  kMinMax,         ///< the smallest and the largest value
  kMovingAverage,  ///< of each sample's smallest and largest value, later samples counting more
  kPercentile,     ///< all but the rarest values
  kMse,            ///< the range whose integers lie nearest in the mean square
  kKl,             ///< the range whose integers keep the distribution best (relative entropy)
};

struct CalibrationRule {
  CalibrationMethod method = CalibrationMethod::kMinMax;
  double percentile = 99.99;  ///< share of values inside the range
  double momentum = 0.9;      ///< weight of the past in a moving average
};

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

/// Statistics of all float tensors; a value. Memory depends on the number of tensors, not of samples. Merging is exact:
/// parts that were made apart and are merged in their order hold the same numbers as if made in one go.
class Calibration {
 public:
  Calibration();
  Calibration(const Calibration&);
  Calibration& operator=(const Calibration&);
  Calibration(Calibration&&) noexcept;
  Calibration& operator=(Calibration&&) noexcept;
  ~Calibration();

  /// Adds samples that come after those of this one. Throws Error(kInvalidArgument) when they are of another model.
  void merge(const Calibration& later);
  int64_t samples() const;
  std::vector<TensorCalibration> tensors() const;
  /// The range of a tensor; nothing when no sample reached it. `bits` (8 or 16) matters to kMse and kKl;
  /// `symmetric`: the range will be used as [-m, m].
  std::optional<ValueRange> range(int subgraph, int tensor, const CalibrationRule& rule, int bits,
                                  bool symmetric) const;

  /// To and from bytes, to be sent between processes. Throws Error(kInvalidArgument) for other bytes.
  std::vector<std::byte> to_bytes() const;
  static Calibration from_bytes(std::span<const std::byte> bytes);

  struct Data;
  const Data& data() const { return *data_; }
  explicit Calibration(std::unique_ptr<Data> data);

 private:
  std::unique_ptr<Data> data_;
};

struct CalibratorOptions {
  int num_threads = 1;
  std::shared_ptr<Budget> budget;  ///< null: the model's
  int subgraph = 0;
  /// Keep histograms, which every method but kMinMax and kMovingAverage needs.
  bool histograms = true;
};

/// Runs a float model and watches its tensors, one node at a time: no activations are kept.
class Calibrator {
 public:
  explicit Calibrator(const Model& model, CalibratorOptions options = {});
  ~Calibrator();
  Calibrator(Calibrator&&) noexcept;
  Calibrator& operator=(Calibrator&&) noexcept;

  /// To resize inputs and set their values.
  Interpreter& interpreter();
  /// Runs the interpreter and records. A run that throws leaves no trace in the statistics.
  void add_sample();
  Calibration calibration() const;
  /// Forgets all samples, keeps the interpreter.
  void clear();
  /// Bytes the statistics take besides the interpreter; charged to the budget as MemoryCategory::kStatistics.
  int64_t statistics_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leadline
