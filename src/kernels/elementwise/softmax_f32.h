// SPDX-License-Identifier: Apache-2.0
// Vectorised softmax and log-softmax of one float32 row.
#pragma once

#include <cstdint>

namespace leadline::kernels {

/// out[i] = e^(beta (in[i] - max)) / sum; `out` may be `in`. count >= 1.
using SoftmaxRowF32 = void (*)(const float* in, float* out, int64_t count, float beta);
SoftmaxRowF32 softmax_row_f32();

/// out[i] = in[i] - max - log(sum of e^(in[j] - max)); `out` may be `in`. count >= 1; beta is not used.
SoftmaxRowF32 log_softmax_row_f32();

}  // namespace leadline::kernels
