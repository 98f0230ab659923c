// SPDX-License-Identifier: Apache-2.0
// What outputs are worth against the float model's: sums over samples, of each output.
#pragma once

#include <cstdint>
#include <vector>

#include "leadline/debug_result.h"

namespace leadline::debug {

/// Rows of an output (along its last axis) against the float model's.
struct RowScore {
  int64_t rows = 0;
  int64_t same_argmax = 0;
  int64_t clearly_other = 0;  // whose largest value is at a place that the float model rates much lower
  double divergences = 0.0;   // from the float model's rows, of `looked_at` rows
  int64_t looked_at = 0;      // logarithms take long: of a picture's rows a part is enough
  double spread = 0.0;  // what tells values of the float model's rows apart: squared distances to their row's mean
  double sum = 0.0;     // of its values, for the squared distances to the mean of all
  double squares = 0.0;
  int64_t values = 0;

  void add(const float* results, const float* references, int64_t count, int64_t width);
  double divergence() const { return looked_at > 0 ? divergences / static_cast<double>(looked_at) : 0.0; }
  /// The power of an error relative to the spread, or without rows to `signal`, the power of the values. Answers that
  /// are almost equal, such as probabilities of a network that knows nothing, have large values and little spread.
  double relative_noise(double noise, double signal) const;
};

class OutputScore {
 public:
  explicit OutputScore(size_t outputs) : sums_(outputs) {}
  /// `width`: of a row, whose largest value is an answer; at most 1: no rows.
  void add(size_t output, const float* values, const float* references, int64_t count, int64_t width);
  /// Of the worst output. File and time are the caller's to fill in.
  DebugMeasure measure() const;

 private:
  struct Sums {
    double noise = 0.0;
    double signal = 0.0;
    double value = 0.0;
    double product = 0.0;
    RowScore rows;
  };
  std::vector<Sums> sums_;
};

/// Whether a model lost something that is worth a search. Less is the price of 8 bits: on trained classifiers 1 % of
/// noise power changes the accuracy by less than the choice of the test set does.
bool lost_something(const DebugMeasure& measure);

}  // namespace leadline::debug
