// SPDX-License-Identifier: Apache-2.0
// Naive 2-D convolution and transposed convolution over NHWC, for every number format.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/cancel.h"
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

/// Calls tap(x) for the columns of a filter's row, and counts the work of each; their number may be large.
template <typename Tap>
void over_columns(int64_t columns, int64_t work, PacedCheck& check, const Tap& tap) {
  const int64_t piece = std::max<int64_t>(1, PacedCheck::kEvery / (work + 1));
  for (int64_t x = 0; x < columns;) {
    const int64_t stop = std::min(columns, x + piece);
    check.count((stop - x) * (work + 1));
    for (; x < stop; ++x) tap(x);
  }
}

/// Computes output rows [row_begin, row_end) of batch * out_h. `row` of the zero point and the finish is the image.
template <typename In, typename Weight, typename Zero, typename Finish, typename Out>
void conv(const ConvShape& s, const In* input, Zero input_zero, const Weight* filter, int32_t filter_zero,
          const Finish& finish, Out* output, int64_t row_begin, int64_t row_end) {
  const int64_t group_in = s.in_c / s.groups;
  const int64_t group_out = s.out_c / s.groups;
  PacedCheck check;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const int64_t image = row / s.out_h;
    const int64_t top = row % s.out_h * s.stride_h - s.pad_h;
    const int32_t zero = input_zero(image);
    const In* image_data = input + image * s.in_h * s.in_w * s.in_c;
    for (int64_t out_x = 0; out_x < s.out_w; ++out_x) {
      const int64_t left = out_x * s.stride_w - s.pad_w;
      Out* out = output + (row * s.out_w + out_x) * s.out_c;
      for (int64_t o = 0; o < s.out_c; ++o) {
        typename Finish::Acc acc = 0;
        for (int64_t y = 0; y < s.filter_h; ++y) {
          const int64_t in_y = top + y * s.dilation_h;
          check.count(1);
          if (in_y < 0 || in_y >= s.in_h) continue;
          over_columns(s.filter_w, group_in, check, [&](int64_t x) {
            const int64_t in_x = left + x * s.dilation_w;
            if (in_x < 0 || in_x >= s.in_w) return;
            const In* pixel = image_data + (in_y * s.in_w + in_x) * s.in_c + o / group_out * group_in;
            const Weight* weights = filter + o * s.step_o + y * s.step_y + x * s.step_x;
            in_pieces(group_in, PacedCheck::kEvery, [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                acc = multiply_add(acc, pixel[i], zero, weights[i * s.step_i], filter_zero);
              }
            });
          });
        }
        out[o] = finish(acc, image, o);
      }
    }
  }
}

/// The gradient's direction: input pixel (y, x) adds filter (ky, kx) to output (y*stride - pad + ky, ...).
/// Groups and dilation do not apply. Computes output rows [row_begin, row_end) of batch * out_h.
template <typename In, typename Weight, typename Zero, typename Finish, typename Out>
void transpose_conv(const ConvShape& s, const In* input, Zero input_zero, const Weight* filter, int32_t filter_zero,
                    const Finish& finish, Out* output, int64_t row_begin, int64_t row_end) {
  PacedCheck check;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const int64_t image = row / s.out_h;
    const int32_t zero = input_zero(image);
    for (int64_t out_x = 0; out_x < s.out_w; ++out_x) {
      Out* out = output + (row * s.out_w + out_x) * s.out_c;
      for (int64_t o = 0; o < s.out_c; ++o) {
        typename Finish::Acc acc = 0;
        for (int64_t y = 0; y < s.filter_h; ++y) {
          const int64_t up_y = row % s.out_h + s.pad_h - y;
          check.count(1);
          if (up_y < 0 || up_y % s.stride_h != 0 || up_y / s.stride_h >= s.in_h) continue;
          over_columns(s.filter_w, s.in_c, check, [&](int64_t x) {
            const int64_t up_x = out_x + s.pad_w - x;
            if (up_x < 0 || up_x % s.stride_w != 0 || up_x / s.stride_w >= s.in_w) return;
            const In* pixel = input + ((image * s.in_h + up_y / s.stride_h) * s.in_w + up_x / s.stride_w) * s.in_c;
            const Weight* weights = filter + o * s.step_o + y * s.step_y + x * s.step_x;
            in_pieces(s.in_c, PacedCheck::kEvery, [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                acc = multiply_add(acc, pixel[i], zero, weights[i * s.step_i], filter_zero);
              }
            });
          });
        }
        out[o] = finish(acc, image, o);
      }
    }
  }
}

}  // namespace leadline::kernels::reference
