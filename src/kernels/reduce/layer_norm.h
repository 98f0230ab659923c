// SPDX-License-Identifier: Apache-2.0
// Rows moved to mean 0 and variance 1: whole rows, or the steps that a long one takes range by range.
#pragma once

#include <cstdint>

#include "core/index_range.h"

namespace leadline::kernels {

/// What is added up of a long row between two ranges.
struct LayerNormSums {
  float lanes[64] = {};
  float total = 0.0F;  // after the last range
};

/// The functions for this CPU. Ranges of a row begin at multiples of 64; those of the sums ascend and cover the row.
struct LayerNorm {
  /// out[i] = (in[i] - mean) / sqrt(variance + epsilon) * gain[i] + shift[i] for i in [0, count). `gain` and `shift`
  /// may be null; `out` may be `in`.
  void (*row)(const float* in, const float* gain, const float* shift, float* out, int64_t count,
              float epsilon) noexcept = nullptr;

  /// Adds the values, or the squares of their distances from the mean.
  void (*add)(const float* in, int64_t count, IndexRange range, LayerNormSums& sums) noexcept = nullptr;
  void (*add_squares)(const float* in, int64_t count, IndexRange range, float mean,
                      LayerNormSums& sums) noexcept = nullptr;
  /// out[i] = (in[i] - mean) * scale * gain[i] + shift[i] for a range.
  void (*write)(const float* in, const float* gain, const float* shift, float* out, IndexRange range, float mean,
                float scale) noexcept = nullptr;
};
LayerNorm layer_norm() noexcept;

}  // namespace leadline::kernels
