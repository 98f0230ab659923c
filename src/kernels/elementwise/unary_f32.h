// SPDX-License-Identifier: Apache-2.0
// Vectorised float32 functions of one argument.
#pragma once

#include <cstdint>

namespace leadline::kernels {

enum class UnaryF32 : uint8_t {
  kClamp,      // min(max(x, p0), p1); NaN stays
  kLeakyRelu,  // x > 0 ? x : x * p0
  kElu,        // x < 0 ? e^x - 1 : x
  kGelu,       // x * P(normal variable <= x)
  kGeluTanh,   // its approximation with tanh
  kHardSwish,  // x * clamp(x + 3, 0, 6) / 6
  kLogistic,
  kSwish,  // x * logistic(x)
  kTanh,
  kExp,
  kAbs,
  kNeg,
  kSqrt,
  kRsqrt,
  kSquare,
  kFloor,
  kCeil,
  kRound,  // to even
  kSign,
};

/// out[i] = f(in[i]) for i in [0, count); `out` may be `in`.
using UnaryRowF32 = void (*)(const float* in, float* out, int64_t count, float p0, float p1) noexcept;

/// The function for this CPU.
UnaryRowF32 unary_row_f32(UnaryF32 op) noexcept;

}  // namespace leadline::kernels
