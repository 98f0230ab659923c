// SPDX-License-Identifier: Apache-2.0
// 8- and 16-bit addition, subtraction and multiplication, bit for bit as LiteRT computes them: one definition for a
// pair of values and vectorised rows of it. The Direct forms are XNNPACK's, which LiteRT uses wherever the scales are
// near each other; the others are TFLite's own fixed-point arithmetic.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/quant/fixed_point.h"

namespace leadline::kernels {

/// result = clamp(zero_point + (a' +- b') * output), x' = ((x - its zero point) << left_shift) * its factor.
struct QuantizedAdd {
  int32_t a_zero_point = 0;
  int32_t b_zero_point = 0;
  int32_t zero_point = 0;
  int left_shift = 0;
  Multiplier a;
  Multiplier b;
  Multiplier output;
  bool subtract = false;
  int32_t lo = 0;
  int32_t hi = 0;

  int32_t operator()(int32_t x, int32_t y) const {
    const int32_t scaled_x = multiply((x - a_zero_point) * (1 << left_shift), a);
    const int32_t scaled_y = multiply((y - b_zero_point) * (1 << left_shift), b);
    const int64_t sum = subtract ? int64_t{scaled_x} - scaled_y : int64_t{scaled_x} + scaled_y;
    const int64_t result = int64_t{zero_point} + multiply(saturate_i32(sum), output);
    return static_cast<int32_t>(std::clamp<int64_t>(result, lo, hi));
  }
};

/// result = clamp(zero_point + (a - its zero point) * (b - its zero point) * output).
struct QuantizedMul {
  int32_t a_zero_point = 0;
  int32_t b_zero_point = 0;
  int32_t zero_point = 0;
  Multiplier output;
  int32_t lo = 0;
  int32_t hi = 0;

  int32_t operator()(int32_t x, int32_t y) const {
    const int64_t product = int64_t{x - a_zero_point} * (y - b_zero_point);
    const int64_t result = int64_t{zero_point} + multiply(saturate_i32(product), output);
    return static_cast<int32_t>(std::clamp<int64_t>(result, lo, hi));
  }
};

/// result = clamp(zero_point + ((bias + x * a + y * b) >> shift)): one rounding.
struct DirectAdd {
  int32_t a = 0;
  int32_t b = 0;     // negative for a subtraction
  int32_t bias = 0;  // half a step less both zero points, scaled
  int shift = 0;
  int32_t zero_point = 0;
  int32_t lo = 0;
  int32_t hi = 0;

  int32_t operator()(int32_t x, int32_t y) const {
    // Partial sums may wrap; the whole fits.
    const uint32_t sum = static_cast<uint32_t>(bias) + static_cast<uint32_t>(x) * static_cast<uint32_t>(a) +
                         static_cast<uint32_t>(y) * static_cast<uint32_t>(b);
    return std::clamp((static_cast<int32_t>(sum) >> shift) + zero_point, lo, hi);
  }
};

/// result = clamp(zero_point + round_half_even((a - its zero point) * (b - its zero point) * scale)) in float32.
struct DirectMul {
  int32_t a_zero_point = 0;
  int32_t b_zero_point = 0;
  int32_t zero_point = 0;
  float scale = 0.0F;
  int32_t lo = 0;
  int32_t hi = 0;

  int32_t operator()(int32_t x, int32_t y) const {
    const float product = static_cast<float>((x - a_zero_point) * (y - b_zero_point)) * scale;
    const float bounded = std::clamp(product, static_cast<float>(lo - zero_point), static_cast<float>(hi - zero_point));
    return static_cast<int32_t>(std::lrint(bounded)) + zero_point;
  }
};

/// out[i] = op(a[i * a_step], b[i * b_step]); steps are 0 or 1; `out` may be an operand with step 1.
template <typename T, typename Op>
using QuantizedRow = void (*)(const Op& op, const T* a, int64_t a_step, const T* b, int64_t b_step, T* out,
                              int64_t count) noexcept;

/// The row function for this CPU; T is int8_t or uint8_t and Op one of the structs above, or T is int16_t and Op a
/// Quantized one.
template <typename T, typename Op>
QuantizedRow<T, Op> quantized_row() noexcept;

}  // namespace leadline::kernels
