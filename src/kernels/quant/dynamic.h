// SPDX-License-Identifier: Apache-2.0
// Quantization of float activations while running ("dynamic range" models): one scale and zero point per row,
// int8, chosen and rounded as XNNPACK does, so that zero is exact.
#pragma once

#include <cstdint>

#include "core/index_range.h"
#include "kernels/quant/row_quantize.h"

namespace leadline::kernels {

/// real = scale * (q - zero_point)
struct DynamicQuantization {
  float scale = 1.0F;
  int32_t zero_point = 0;
};

/// Parameters that cover [min, max] and 0.
DynamicQuantization dynamic_quantization(float min, float max) noexcept;

/// What runs a dynamic range op in LiteRT, and so which levels its activations are rounded to.
enum class RowRule : uint8_t {
  kXnnpack,           ///< zero is exact; NaN becomes the lowest level
  kTfliteSymmetric,   ///< zero point 0, levels -127 to 127
  kTfliteAsymmetric,  ///< the range is widened to hold 0
};

/// How a row becomes levels. With TFLite's rules a row of zeros, and one whose range is not finite, becomes zeros.
struct RowPlan {
  enum class Levels : uint8_t { kEven, kCut, kAway, kZero };
  Levels levels = Levels::kZero;
  float scale = 1.0F;
  int32_t zero_point = 0;
  float inverse = 1.0F;
};

/// The steps: the range of a row, or of a part of it; the plan for a range; levels of a row, or of a part of it.
RowRange row_range(const float* values, int64_t count) noexcept;
RowRange join(const RowRange& a, const RowRange& b) noexcept;
RowPlan plan_row(RowRule rule, const RowRange& range) noexcept;
void write_levels(const float* values, int64_t count, const RowPlan& plan, int8_t* quantized) noexcept;

/// The parameters of many rows, one array each, as the gemm reads them.
struct RowParameters {
  float* scale = nullptr;
  int32_t* zero_point = nullptr;
};

/// Quantizes rows [begin, end) of `size` values each.
void quantize_rows(const float* values, IndexRange rows, int64_t size, int8_t* quantized, RowParameters parameters,
                   RowRule rule) noexcept;

}  // namespace leadline::kernels
