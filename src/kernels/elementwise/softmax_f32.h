// SPDX-License-Identifier: Apache-2.0
// Vectorised softmax and log-softmax of float32 rows: whole rows, or the steps that a long one takes block by block.
#pragma once

#include <cstdint>

namespace leadline::kernels {

/// Values of a block of a long row. Its sum is added up block by block.
inline constexpr int64_t kSoftmaxBlock = int64_t{1} << 18;

/// The functions for this CPU. `out` may be `in`; count is 1 to kSoftmaxBlock.
struct SoftmaxF32 {
  /// out[i] = e^(beta (in[i] - max)) / sum.
  void (*row)(const float* in, float* out, int64_t count, float beta) noexcept = nullptr;
  /// out[i] = in[i] - max - log(sum of e^(in[j] - max)); beta is not used.
  void (*log_row)(const float* in, float* out, int64_t count, float beta) noexcept = nullptr;

  float (*max)(const float* in, int64_t count) noexcept = nullptr;
  /// The sum of out[i] = e^(beta (in[i] - most)).
  float (*exp_sum)(const float* in, float* out, int64_t count, float most, float beta) noexcept = nullptr;
  /// The sum of e^(in[i] - most).
  float (*log_sum)(const float* in, int64_t count, float most) noexcept = nullptr;
  /// out[i] *= by.
  void (*multiply)(float* out, int64_t count, float by) noexcept = nullptr;
  /// out[i] = in[i] - most - log_sum.
  void (*subtract)(const float* in, float* out, int64_t count, float most, float log_sum) noexcept = nullptr;
};
SoftmaxF32 softmax_f32() noexcept;

}  // namespace leadline::kernels
