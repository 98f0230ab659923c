// SPDX-License-Identifier: Apache-2.0
// Rounding of weights that looks at more than one weight at a time (WeightRounding::kMse and kComq).
//
// Scales are searched for: each is the smallest that holds the largest weight, or a smaller one that cuts it off, by
// the error of rounding to nearest. Integers are then found by coordinate descent (COMQ, arXiv 2403.07134): weight
// after weight moves to the integer that makes up best for the errors of all others of its row, until none moves. That
// needs no factorization, cannot fail, and never ends worse than it began.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quantize/constants.h"

namespace leadline::quantize {

/// The integers that a weight may become.
struct LevelRange {
  int64_t low = 0;
  int64_t high = 0;
};

/// Rounds rows of weights, one after another: the slices along Rounding::output_axis.
class RowRounder {
 public:
  RowRounder(const Rounding& rounding, int64_t rows, int64_t columns);
  /// Memory that it takes for rows of so many columns, whether there are products or not.
  static int64_t bytes(const Rounding& rounding, int64_t columns);

  /// Whether errors of different weights of a row go together, or have costs of their own.
  bool has_products() const { return gram_ != nullptr; }
  /// What an error of each weight of the row costs in the square, errors of others aside.
  std::span<const float> costs(int64_t row);
  /// errors[i] += what rounding the row to nearest with scale * factors[i] costs.
  void add_errors(int64_t row, std::span<const float> weights, float scale, int64_t zero, LevelRange range,
                  std::span<const float> factors, std::span<double> errors);
  /// The integers of a row; `scales` has one, or one for each weight.
  void round(int64_t row, std::span<const float> weights, std::span<const float> scales, int64_t zero, LevelRange range,
             std::span<int32_t> levels);

 private:
  void go_to(int64_t row);
  void rotate_products();
  /// changes_ = G e
  void multiply(std::span<const float> errors);

  const Rounding& rounding_;
  const GramMatrix* gram_ = nullptr;
  int64_t columns_;
  int64_t rows_per_group_ = 1;
  int64_t group_ = -1;
  bool any_products_ = false;    // of this group
  bool full_ = false;            // products_ is a matrix, not a diagonal
  std::vector<float> products_;  // G of the group
  std::vector<float> costs_;     // its diagonal
  std::vector<float> errors_;
  std::vector<float> changes_;
};

/// What scales are multiplied with, to be compared.
std::span<const float> scale_factors();

/// Replaces scales by what rounding asks for. They are those of slices along `axis`, or of all when it is -1.
void fit_scales(const FloatConstant& constant, int axis, LevelRange range, const Rounding& rounding,
                std::span<float> scales, std::span<const int64_t> zeros);

/// Like quantized_source(), with integers by coordinate descent. int4 and int8.
ir::Source descended_source(FloatConstant constant, LevelRule rule);

/// Memory that fit_scales() takes.
int64_t fitting_bytes(const Rounding& rounding, const Shape& weights);

}  // namespace leadline::quantize
