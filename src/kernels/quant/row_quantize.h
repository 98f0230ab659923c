// SPDX-License-Identifier: Apache-2.0
// Quantization of one row of floats to int8 while running, as TFLite's own kernels do it: recurrent ops, and those
// that XNNPACK does not take (its rule is in quant/dynamic.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace leadline::kernels {

/// real = scale * (q - zero_point)
struct RowQuantization {
  float scale = 1.0F;
  int32_t zero_point = 0;
};

/// Rounds to nearest, ties away from zero, within [lo, 127]; NaN becomes lo.
inline int8_t round_to_int8(float value, float lo) {
  const float rounded = std::round(value);
  return static_cast<int8_t>(rounded > lo ? std::min(rounded, 127.0F) : lo);
}

/// Symmetric: zero point 0, levels -127 to 127. Asymmetric: the range is widened to hold 0.
inline RowQuantization quantize_recurrent_row(const float* values, int64_t count, bool asymmetric, int8_t* quantized) {
  float min = 0.0F;
  float max = 0.0F;
  for (int64_t i = 0; i < count; ++i) {
    min = std::min(min, values[i]);
    max = std::max(max, values[i]);
  }
  if (min == max || !std::isfinite(max - min)) {
    std::fill_n(quantized, count, int8_t{0});
    return {};
  }
  if (!asymmetric) {
    const float range = std::max(-min, max);
    const float inverse = 127.0F / range;
    for (int64_t i = 0; i < count; ++i) quantized[i] = round_to_int8(values[i] * inverse, -127.0F);
    return {range / 127.0F, 0};
  }
  // The zero point is taken from the end of the range where it loses less.
  const double scale = static_cast<double>(max - min) / 255.0;
  const double from_min = -128.0 - min / scale;
  const double from_max = 127.0 - max / scale;
  const double chosen = 128.0 + std::abs(min / scale) < 127.0 + std::abs(max / scale) ? from_min : from_max;
  const auto zero_point = static_cast<int32_t>(std::round(std::clamp(chosen, -128.0, 127.0)));
  const auto step = static_cast<float>(scale);
  const auto inverse = static_cast<float>(1.0 / step);
  for (int64_t i = 0; i < count; ++i) {
    // Half is added and the fraction cut off, before the zero point: TFLite's vector code, not quite std::round.
    const float scaled = values[i] * inverse;
    const float level = scaled > -256.0F ? std::min(scaled, 256.0F) : -256.0F;  // also for NaN
    const auto rounded = static_cast<int32_t>(level + (level < 0.0F ? -0.5F : 0.5F));
    quantized[i] = static_cast<int8_t>(std::clamp(rounded + zero_point, -128, 127));
  }
  return {step, zero_point};
}

}  // namespace leadline::kernels
