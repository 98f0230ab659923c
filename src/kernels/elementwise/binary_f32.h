// SPDX-License-Identifier: Apache-2.0
// Vectorised rows of the float32 binary ops, with a fused clamp.
#pragma once

#include <cstdint>

namespace leadline::kernels {

enum class BinaryF32 : uint8_t { kAdd, kSub, kMul, kDiv, kSquaredDifference, kMaximum, kMinimum, kPrelu };

/// out[i] = clamp(op(a[i * a_step], b[i * b_step]), lo, hi) for i in [0, count); steps are 0 or 1.
/// NaN passes the clamp. `out` may be the same memory as an operand with step 1. kPrelu: a >= 0 ? a : a * b.
using BinaryRowF32 = void (*)(const float* a, int64_t a_step, const float* b, int64_t b_step, float* out, int64_t count,
                              float lo, float hi) noexcept;

/// The row function for this CPU.
BinaryRowF32 binary_row_f32(BinaryF32 op) noexcept;

}  // namespace leadline::kernels
