// SPDX-License-Identifier: Apache-2.0
// Rows moved to mean 0 and variance 1.
#pragma once

#include <cstdint>

namespace leadline::kernels {

/// out[i] = (in[i] - mean) / sqrt(variance + epsilon) * gain[i] + shift[i] for i in [0, count). `gain` and `shift` may
/// be null; `out` may be `in`.
using LayerNormRow = void (*)(const float* in, const float* gain, const float* shift, float* out, int64_t count,
                              float epsilon);

/// The function for this CPU.
LayerNormRow layer_norm_row();

}  // namespace leadline::kernels
