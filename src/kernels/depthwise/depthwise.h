// SPDX-License-Identifier: Apache-2.0
// Depthwise 2-D convolution, NHWC, filters [filter_h, filter_w, out_c] as .tflite files store them (nothing is packed).
// Output channel oc reads input channel oc / multiplier. Needs no workspace.
// Invariant: an output has the same bits whatever the band of rows or the number of threads it is computed in.
#pragma once

#include <cstdint>
#include <limits>

#include "core/thread_pool.h"

namespace leadline::kernels {

/// Geometry, checked by the caller: sizes are positive (batch and output may be 0), element counts fit int64.
/// Taps outside the input read as padding.
struct DepthwiseShape {
  int64_t batch = 1;
  int64_t in_h = 1, in_w = 1, in_c = 1;
  int64_t out_h = 1, out_w = 1;
  int64_t multiplier = 1;
  int64_t filter_h = 1, filter_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0;

  int64_t out_c() const { return in_c * multiplier; }
  int64_t taps() const { return filter_h * filter_w; }
  /// Rows of output over the whole batch: the unit in which bands are counted.
  int64_t rows() const { return batch * out_h; }
};

/// All pointers are borrowed; only `output` is written, and it overlaps nothing else.
struct DepthwiseF32 {
  DepthwiseShape shape;
  const float* input = nullptr;
  const float* filter = nullptr;
  const float* bias = nullptr;  // out_c values, or null
  float* output = nullptr;
  float lo = -std::numeric_limits<float>::infinity();
  float hi = std::numeric_limits<float>::infinity();
};

/// Exact int32 sums of (input - input_zero_point) * (filter - filter_zero_point) plus bias, then
/// clamp(round_half_even(float(sum) * scale[oc]) + output_zero_point, lo, hi). Padding reads as the input's zero point.
struct DepthwiseI8 {
  DepthwiseShape shape;
  bool is_unsigned = false;  // input, filter and output are uint8_t, not int8_t
  const void* input = nullptr;
  int32_t input_zero_point = 0;
  const void* filter = nullptr;
  int32_t filter_zero_point = 0;
  const int32_t* bias = nullptr;  // out_c values, or null
  void* output = nullptr;
  const float* scale = nullptr;  // out_c values, finite
  int32_t output_zero_point = 0;
  int32_t lo = -128;
  int32_t hi = 127;
};

/// Hybrid: int8 activations, all of one scale and zero point, and int8 filters with zero point 0. Exact int32 sums
/// become clamp((float(sum) * scale[oc]) * input_scale + bias[oc], lo, hi), each step rounded; NaN stays NaN.
struct DepthwiseHybrid {
  DepthwiseShape shape;
  const int8_t* input = nullptr;
  int32_t input_zero_point = 0;
  float input_scale = 1.0F;
  const int8_t* filter = nullptr;
  const float* scale = nullptr;  // out_c values
  const float* bias = nullptr;   // out_c values, or null
  float* output = nullptr;
  float lo = -std::numeric_limits<float>::infinity();
  float hi = std::numeric_limits<float>::infinity();
};

/// Computes output rows [row_begin, row_end) of shape.rows() on the calling thread. Disjoint bands may run at the same
/// time. Fast with multiplier 1, at least 4 channels (8 in 8 bits and hybrid) and at most 128 taps; plain loops
/// otherwise, and in 8 bits and hybrid also where stride or dilation spread the taps of four outputs beyond a small
/// buffer (some hundred columns).
void depthwise_f32_band(const DepthwiseF32& conv, int64_t row_begin, int64_t row_end);
void depthwise_i8_band(const DepthwiseI8& conv, int64_t row_begin, int64_t row_end);
void depthwise_hybrid_band(const DepthwiseHybrid& conv, int64_t row_begin, int64_t row_end);

/// All rows, split over the pool.
void depthwise_f32(const DepthwiseF32& conv, ThreadPool& pool);
void depthwise_i8(const DepthwiseI8& conv, ThreadPool& pool);
void depthwise_hybrid(const DepthwiseHybrid& conv, ThreadPool& pool);

}  // namespace leadline::kernels
