// SPDX-License-Identifier: Apache-2.0
// Quantization of one row of floats to int8 while running, as TFLite's own kernels do it: recurrent ops, and those
// that XNNPACK does not take (its rule is in quant/dynamic.h).
#pragma once

#include <cstdint>

namespace leadline::kernels {

/// Smallest and largest of some values and 0.
struct RowRange {
  float min = 0.0F;
  float max = 0.0F;
};

/// real = scale * (q - zero_point)
struct RowQuantization {
  float scale = 1.0F;
  int32_t zero_point = 0;
};

/// Symmetric: zero point 0, levels -127 to 127. Asymmetric: the range is widened to hold 0. A row of zeros, and one
/// whose range is not finite, becomes zeros. NaN becomes the lowest level.
RowQuantization quantize_recurrent_row(const float* values, int64_t count, bool asymmetric, int8_t* quantized);

}  // namespace leadline::kernels
