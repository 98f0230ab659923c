// SPDX-License-Identifier: Apache-2.0
// 8-bit addition, subtraction and multiplication in TFLite's fixed-point arithmetic, bit for bit: one definition for
// a pair of values and vectorised rows of it.
#pragma once

#include <algorithm>
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

/// out[i] = op(a[i * a_step], b[i * b_step]); steps are 0 or 1; `out` may be an operand with step 1.
template <typename T, typename Op>
using QuantizedRow = void (*)(const Op& op, const T* a, int64_t a_step, const T* b, int64_t b_step, T* out,
                              int64_t count);

/// The row functions for this CPU; T is int8_t or uint8_t.
template <typename T>
QuantizedRow<T, QuantizedAdd> quantized_add_row();
template <typename T>
QuantizedRow<T, QuantizedMul> quantized_mul_row();

}  // namespace leadline::kernels
