// SPDX-License-Identifier: Apache-2.0
// Quantization of float activations while running ("dynamic range" models): one scale and zero point per row,
// int8, chosen and rounded as XNNPACK does, so that zero is exact.
#pragma once

#include <cstdint>

#include "core/thread_pool.h"

namespace leadline::kernels {

/// real = scale * (q - zero_point)
struct DynamicQuantization {
  float scale = 1.0F;
  int32_t zero_point = 0;
};

/// Parameters that cover [min, max] and 0.
DynamicQuantization dynamic_quantization(float min, float max);

/// Quantizes `count` values; NaN becomes the lowest level.
DynamicQuantization quantize_row(const float* values, int64_t count, int8_t* quantized);

/// Who runs a dynamic range op in LiteRT, and so which levels its activations are rounded to.
enum class RowRule : uint8_t {
  kXnnpack,          ///< quantize_row() of this file
  kTfliteSymmetric,  ///< quantize_recurrent_row() of row_quantize.h
  kTfliteAsymmetric,
};

/// The parameters of many rows, one array each, as the gemm reads them.
struct RowParameters {
  float* scale = nullptr;
  int32_t* zero_point = nullptr;
};

/// Quantizes `rows` rows of `size` values each: whole rows on each thread, or parts of them where rows are few.
void quantize_rows(const float* values, int64_t rows, int64_t size, int8_t* quantized, RowParameters parameters,
                   ThreadPool& pool, RowRule rule = RowRule::kXnnpack);

}  // namespace leadline::kernels
