// SPDX-License-Identifier: Apache-2.0
// The metrics: numbers of one sample from its outputs.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "leadline/evaluate.h"
#include "leadline/model.h"
#include "leadline/samples.h"

namespace leadline::jobs {

/// Values of a tensor as real numbers: integers that are quantized stand for others.
class RealValues {
 public:
  RealValues(const SampleTensor& tensor, const TensorInfo* quantized);
  int64_t size() const { return size_; }
  double operator[](int64_t index) const;

 private:
  const SampleTensor& tensor_;
  int64_t size_;
  double scale_ = 1;
  double zero_point_ = 0;
};

/// Place of the largest of `size` values from `begin`; the first of several, and NaN counts as the smallest.
int64_t top_answer(const RealValues& values, int64_t begin, int64_t size);

/// One row of outputs for each label. `targets` hold one label for each row, or one number for each class (one-hot).
SampleScore accuracy(const SampleTensor& output, const TensorInfo& info, const SampleTensor& target, int top_k);
SampleScore agreement(const SampleTensor& output, const TensorInfo& info, const SampleTensor& expected,
                      const TensorInfo& expected_info);
/// kMeanSquaredError, kMeanAbsoluteError or kCosine.
SampleScore distance(Metric metric, const RealValues& output, const RealValues& expected);

}  // namespace leadline::jobs
