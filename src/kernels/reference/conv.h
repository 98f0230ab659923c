// SPDX-License-Identifier: Apache-2.0
// Naive 2-D convolution and transposed convolution over NHWC, for every number format.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/index_range.h"
#include "kernels/conv/conv2d.h"
#include "kernels/reference/contraction.h"

namespace leadline::kernels::reference {

/// Sizes of a convolution. Output channel o belongs to group o / (out_c / groups) and reads the in_c / groups input
/// channels of that group. The filter's layout is free: value (o, y, x, i) is at o*step_o + y*step_y + x*step_x +
/// i*step_i. A depthwise convolution has one group per input channel.
struct ConvShape {
  int64_t batch = 0, in_h = 0, in_w = 0, in_c = 0;
  int64_t out_h = 0, out_w = 0, out_c = 0;
  int64_t filter_h = 1, filter_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t pad_h = 0, pad_w = 0;  // before the first row and column
  int64_t groups = 1;
  int64_t step_o = 0, step_y = 0, step_x = 0, step_i = 0;
};

/// The same for the filters [out_c, filter_h, filter_w, filter_c] of the fast kernels.
inline ConvShape conv_shape(const kernels::ConvShape& s) {
  return {.batch = s.batch,
          .in_h = s.in_h,
          .in_w = s.in_w,
          .in_c = s.in_c,
          .out_h = s.out_h,
          .out_w = s.out_w,
          .out_c = s.out_c,
          .filter_h = s.filter_h,
          .filter_w = s.filter_w,
          .stride_h = s.stride_h,
          .stride_w = s.stride_w,
          .dilation_h = s.dilation_h,
          .dilation_w = s.dilation_w,
          .pad_h = s.pad_top,
          .pad_w = s.pad_left,
          .groups = s.groups(),
          .step_o = s.filter_size(),
          .step_y = s.filter_w * s.filter_c,
          .step_x = s.filter_c,
          .step_i = 1};
}

/// Calls body(y, x, begin, end) for the values [begin, end) of each tap (y, x) that `depth` covers, where it is a range
/// of the rows * columns * channels values of a filter.
template <typename Body>
void for_filter_values(int64_t columns, int64_t channels, IndexRange depth, const Body& body) {
  const int64_t row = columns * channels;
  for (int64_t y = depth.begin == 0 ? 0 : depth.begin / row; y * row < depth.end; ++y) {
    const int64_t begin = std::max<int64_t>(depth.begin - y * row, 0);
    const int64_t end = std::min(depth.end - y * row, row);
    for (int64_t x = begin == 0 ? 0 : begin / channels; x * channels < end; ++x) {
      body(y, x, std::max<int64_t>(begin - x * channels, 0), std::min(end - x * channels, channels));
    }
  }
}

/// An output: its image, pixel and channel.
struct ConvOutput {
  int64_t image = 0, y = 0, x = 0, channel = 0;
};

/// Everything that the two convolutions share. An output is the sum of depth() products, one chain of additions.
template <typename In, typename Weight, typename Zero, typename Finish, typename Out>
struct ConvOperands {
  using Acc = typename Finish::Acc;
  using Output = ConvOutput;

  ConvShape shape;
  const In* input = nullptr;
  Zero input_zero;  // of an image
  const Weight* filter = nullptr;
  int32_t filter_zero = 0;
  Finish finish;
  Out* output = nullptr;

  int64_t outputs() const { return shape.batch * shape.out_h * shape.out_w * shape.out_c; }
  ConvOutput at(int64_t index) const {
    const int64_t pixel = index / shape.out_c;
    const int64_t row = pixel / shape.out_w;
    return {row / shape.out_h, row % shape.out_h, pixel % shape.out_w, index % shape.out_c};
  }
  void next(ConvOutput& o) const {
    if (++o.channel < shape.out_c) return;
    o.channel = 0;
    if (++o.x < shape.out_w) return;
    o.x = 0;
    if (++o.y < shape.out_h) return;
    o.y = 0;
    ++o.image;
  }
  void write(int64_t index, const ConvOutput& o, Acc acc) const { output[index] = finish(acc, o.image, o.channel); }
};

template <typename In, typename Weight, typename Zero, typename Finish, typename Out>
struct Conv : ConvOperands<In, Weight, Zero, Finish, Out> {
  using Acc = typename Finish::Acc;

  int64_t depth() const {
    return this->shape.filter_h * this->shape.filter_w * (this->shape.in_c / this->shape.groups);
  }

  /// Adds the products in a range of depth().
  Acc add(const ConvOutput& o, IndexRange range, Acc acc) const {
    const ConvShape& s = this->shape;
    const int64_t group_in = s.in_c / s.groups;
    const int64_t top = o.y * s.stride_h - s.pad_h;
    const int64_t left = o.x * s.stride_w - s.pad_w;
    const int32_t zero = this->input_zero(o.image);
    const In* group = this->input + o.image * s.in_h * s.in_w * s.in_c + o.channel / (s.out_c / s.groups) * group_in;
    const Weight* of_channel = this->filter + o.channel * s.step_o;
    for_filter_values(s.filter_w, group_in, range, [&](int64_t y, int64_t x, int64_t begin, int64_t end) {
      const int64_t in_y = top + y * s.dilation_h;
      const int64_t in_x = left + x * s.dilation_w;
      if (in_y < 0 || in_y >= s.in_h || in_x < 0 || in_x >= s.in_w) return;
      const In* pixel = group + (in_y * s.in_w + in_x) * s.in_c;
      const Weight* weights = of_channel + y * s.step_y + x * s.step_x;
      for (int64_t i = begin; i < end; ++i) {
        acc = multiply_add(acc, pixel[i], zero, weights[i * s.step_i], this->filter_zero);
      }
    });
    return acc;
  }
};

/// The gradient's direction: input pixel (y, x) adds filter (ky, kx) to output (y*stride - pad + ky, ...).
/// Groups and dilation do not apply.
template <typename In, typename Weight, typename Zero, typename Finish, typename Out>
struct TransposeConv : ConvOperands<In, Weight, Zero, Finish, Out> {
  using Acc = typename Finish::Acc;

  int64_t depth() const { return this->shape.filter_h * this->shape.filter_w * this->shape.in_c; }

  Acc add(const ConvOutput& o, IndexRange range, Acc acc) const {
    const ConvShape& s = this->shape;
    const int32_t zero = this->input_zero(o.image);
    const In* image = this->input + o.image * s.in_h * s.in_w * s.in_c;
    const Weight* of_channel = this->filter + o.channel * s.step_o;
    for_filter_values(s.filter_w, s.in_c, range, [&](int64_t y, int64_t x, int64_t begin, int64_t end) {
      const int64_t up_y = o.y + s.pad_h - y;
      const int64_t up_x = o.x + s.pad_w - x;
      if (up_y < 0 || up_y % s.stride_h != 0 || up_y / s.stride_h >= s.in_h) return;
      if (up_x < 0 || up_x % s.stride_w != 0 || up_x / s.stride_w >= s.in_w) return;
      const In* pixel = image + (up_y / s.stride_h * s.in_w + up_x / s.stride_w) * s.in_c;
      const Weight* weights = of_channel + y * s.step_y + x * s.step_x;
      for (int64_t i = begin; i < end; ++i) {
        acc = multiply_add(acc, pixel[i], zero, weights[i * s.step_i], this->filter_zero);
      }
    });
    return acc;
  }
};

}  // namespace leadline::kernels::reference
