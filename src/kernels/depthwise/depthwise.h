// SPDX-License-Identifier: Apache-2.0
// Depthwise 2-D convolution, NHWC, filters [filter_h, filter_w, out_c] as .tflite files store them (nothing is packed).
// Output channel oc reads input channel oc / multiplier. Needs no workspace.
// Invariant: an output has the same bits whatever the band of rows or the number of threads it is computed in.
#pragma once

#include <cstdint>
#include <limits>

#include "core/index_range.h"
#include "kernels/gemm/gemm_i16.h"

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

/// int16 activations and int8 filters, both with zero point 0, multiplier 1 and at most kMaxTaps taps.
struct DepthwiseI16 {
  DepthwiseShape shape;
  const int16_t* input = nullptr;
  const int8_t* filter = nullptr;
  WideFinish finish;  // of out_c channels
  int16_t* output = nullptr;
};

/// What one call computes: rows of shape.rows(), of these the pixels `columns`, and of these the output channels
/// `channels`. Where channels are cut between threads, each side has at least kChannelUnit of them, and the cut is at a
/// multiple of it: vectors that overlap their neighbour at the end of the tensor stay inside their part.
struct DepthwisePart {
  IndexRange rows;
  IndexRange columns;
  IndexRange channels;
};

inline constexpr int64_t kChannelUnit = 64;  // a cache line of bytes, and a multiple of every vector

/// Computes a part on the calling thread. Disjoint parts may run at the same time. Fast with multiplier 1, at least 4
/// channels (8 in 8 bits and hybrid) and at most kMaxTaps taps; plain loops otherwise, and in 8 bits and hybrid also
/// where stride or dilation spread the taps of four outputs beyond a small buffer (some hundred columns).
void depthwise_part(const DepthwiseF32& conv, const DepthwisePart& part) noexcept;
void depthwise_part(const DepthwiseI8& conv, const DepthwisePart& part) noexcept;
void depthwise_part(const DepthwiseHybrid& conv, const DepthwisePart& part) noexcept;
void depthwise_part(const DepthwiseI16& conv, const DepthwisePart& part) noexcept;

inline constexpr int64_t kMaxTaps = 128;

/// One output of an enormous filter: adds a range of its taps to `sum`. Calls over ascending ranges that cover
/// [0, taps()) give the bits of depthwise_part(); the last one writes the output. `output` is its index in the tensor.
void depthwise_taps(const DepthwiseF32& conv, int64_t output, IndexRange taps, float& sum) noexcept;
void depthwise_taps(const DepthwiseI8& conv, int64_t output, IndexRange taps, int32_t& sum) noexcept;
void depthwise_taps(const DepthwiseHybrid& conv, int64_t output, IndexRange taps, int32_t& sum) noexcept;

}  // namespace leadline::kernels
