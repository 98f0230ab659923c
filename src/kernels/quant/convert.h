// SPDX-License-Identifier: Apache-2.0
// Floats to levels and back, vectorised rows.
#pragma once

#include <cstdint>

namespace leadline::kernels {

/// level = clamp(round(value / scale), lo, hi) + zero_point. Bounds are integers and come before the rounding.
struct QuantizeRange {
  float scale = 1.0F;
  int32_t zero_point = 0;
  float lo = 0.0F;
  float hi = 0.0F;
};

/// Rounds to nearest, ties away from zero; NaN becomes `hi` for 8 bits and `lo` for 16, as in LiteRT.
template <typename T>
using QuantizeRow = void (*)(const float* in, T* out, int64_t count, const QuantizeRange& range) noexcept;

/// out = scale * (in - zero_point).
template <typename T>
using DequantizeRow = void (*)(const T* in, float* out, int64_t count, float scale, int32_t zero_point) noexcept;

/// The row functions for this CPU; T is int8_t, uint8_t or int16_t.
template <typename T>
QuantizeRow<T> quantize_row() noexcept;
template <typename T>
DequantizeRow<T> dequantize_row() noexcept;

}  // namespace leadline::kernels
