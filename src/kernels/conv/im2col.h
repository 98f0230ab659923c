// SPDX-License-Identifier: Apache-2.0
// Gathers what the filter sees at output pixels into rows of a matrix (im2col), whole or a slice of its columns.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/conv/conv2d.h"

namespace leadline::kernels {

/// What one copy can take: a row of the filter where its taps are neighbours in memory, else a single tap.
struct Im2colUnit {
  explicit Im2colUnit(const ConvShape& s)
      : taps(s.dilation_w == 1 && s.filter_c == s.in_c ? s.filter_w : 1), per_row(s.filter_w / taps) {}
  int64_t taps;     // along x
  int64_t per_row;  // units in a row of the filter
};

/// Writes elements [begin, end) of one unit whose first tap lies at in_x of the input row (null: outside the input).
template <typename T>
T* gather_unit(const ConvShape& s, const T* row, int64_t in_x, int64_t begin, int64_t end, T padding, T* out) {
  // Elements of the unit before `inside` lie left of the input, those from `outside` right of it.
  const int64_t inside = row == nullptr ? end : std::clamp(-in_x * s.filter_c, begin, end);
  const int64_t outside = row == nullptr ? end : std::clamp((s.in_w - in_x) * s.filter_c, inside, end);
  out = std::fill_n(out, inside - begin, padding);
  if (outside > inside) {
    const T* from = row + in_x * s.in_c + inside;
    // Short copies are many where channels are few (the first layer of an image model); a call each would dominate.
    if (outside - inside < 16) {
      for (int64_t i = 0; i < outside - inside; ++i) out[i] = from[i];
      out += outside - inside;
    } else {
      out = std::copy_n(from, outside - inside, out);
    }
  }
  return std::fill_n(out, end - outside, padding);
}

/// Writes columns [k_begin, k_end) of the im2col rows of pixels [pixel_begin, pixel_end) of one group, densely.
/// Pixels are counted over the batch: (batch * out_h + y) * out_w + x. Taps outside the input read as `padding`.
template <typename T>
void im2col(const ConvShape& s, const T* input, int64_t group, int64_t pixel_begin, int64_t pixel_end, int64_t k_begin,
            int64_t k_end, T padding, T* out) {
  const Im2colUnit unit(s);
  const int64_t size = unit.taps * s.filter_c;
  const int64_t first = k_begin / size;
  const int64_t last = (k_end + size - 1) / size;
  int64_t x = pixel_begin % s.out_w;
  int64_t y = pixel_begin / s.out_w % s.out_h;
  int64_t batch = pixel_begin / s.out_w / s.out_h;
  for (int64_t pixel = pixel_begin; pixel < pixel_end; ++pixel) {
    const T* image = input + batch * s.in_h * s.in_w * s.in_c + group * s.filter_c;
    int64_t ky = first / unit.per_row;
    int64_t kx = first % unit.per_row;
    for (int64_t u = first; u < last; ++u) {
      const int64_t in_y = y * s.stride_h - s.pad_top + ky * s.dilation_h;
      const int64_t in_x = x * s.stride_w - s.pad_left + kx * s.dilation_w;
      const T* row = in_y >= 0 && in_y < s.in_h ? image + in_y * s.in_w * s.in_c : nullptr;
      // The slice may begin and end inside a unit.
      out = gather_unit(s, row, in_x, std::max<int64_t>(k_begin - u * size, 0), std::min(k_end - u * size, size),
                        padding, out);
      if (++kx == unit.per_row) {
        kx = 0;
        ++ky;
      }
    }
    if (++x == s.out_w) {
      x = 0;
      if (++y == s.out_h) {
        y = 0;
        ++batch;
      }
    }
  }
}

}  // namespace leadline::kernels
