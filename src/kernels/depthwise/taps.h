// SPDX-License-Identifier: Apache-2.0
// Where the taps of a depthwise filter lie for a group of neighbouring output pixels. Lives on the stack.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/depthwise/depthwise.h"

namespace leadline::kernels {

inline constexpr int64_t kGroupPixels = 4;      // pixels that share each load of the filter
inline constexpr int64_t kChunkChannels = 256;  // channels per pass: bounds the padding row, keeps filters in cache

/// One output: pixel x of a row counted over the batch, and its channel.
struct DepthwiseOutput {
  int64_t row = 0, x = 0, channel = 0;
};

inline DepthwiseOutput output_at(const DepthwiseShape& s, int64_t index) {
  const int64_t pixel = index / s.out_c();
  return {pixel / s.out_w, pixel % s.out_w, index % s.out_c()};
}

/// Calls add(tap, input) for the taps in a range that lie inside the input, row by row of the filter: `input` is the
/// pixel that the tap sees, counted over the batch.
template <typename Add>
inline void for_taps(const DepthwiseShape& s, const DepthwiseOutput& output, IndexRange taps, const Add& add) {
  const int64_t top = output.row % s.out_h * s.stride_h - s.pad_top;
  const int64_t left = output.x * s.stride_w - s.pad_left;
  const int64_t image = output.row / s.out_h * s.in_h;
  for (int64_t ky = taps.begin == 0 ? 0 : taps.begin / s.filter_w; ky * s.filter_w < taps.end; ++ky) {
    const int64_t in_y = top + ky * s.dilation_h;
    if (in_y < 0 || in_y >= s.in_h) continue;
    const int64_t line = (image + in_y) * s.in_w;
    const int64_t first = ky * s.filter_w;
    const int64_t end = std::min(taps.end - first, s.filter_w);
    for (int64_t kx = std::max<int64_t>(taps.begin - first, 0); kx < end; ++kx) {
      const int64_t in_x = left + kx * s.dilation_w;
      if (in_x >= 0 && in_x < s.in_w) add(first + kx, line + in_x);
    }
  }
}

/// Pointers to the taps' inputs, for multiplier 1 and at most kMaxTaps taps.
template <typename T>
class TapTable {
 public:
  /// `padding` has kChunkChannels values and outlives the table.
  TapTable(const DepthwiseShape& s, const T* input, const T* padding) : s_(s), input_(input), padding_(padding) {
    std::fill(pointers_, pointers_ + kGroupPixels * (kMaxTaps + 1), padding);
  }

  /// Prepares for output row `row` (counted over the batch) and channels from `channel`.
  void set_row(int64_t row, int64_t channel) {
    const int64_t y = row % s_.out_h * s_.stride_h - s_.pad_top;
    const T* image = input_ + row / s_.out_h * s_.in_h * s_.in_w * s_.in_c + channel;
    for (int64_t ky = 0; ky < s_.filter_h; ++ky) {
      const int64_t in_y = y + ky * s_.dilation_h;
      const bool inside = in_y >= 0 && in_y < s_.in_h;
      for (int64_t kx = 0; kx < s_.filter_w; ++kx) {
        rows_[ky * s_.filter_w + kx] = inside ? image + in_y * s_.in_w * s_.in_c : nullptr;
      }
    }
  }

  /// Points at the taps of output pixels [x, x + kGroupPixels); those from out_w on read padding.
  void set_pixels(int64_t x) {
    const int64_t first = x * s_.stride_w - s_.pad_left;
    const int64_t last = first + (kGroupPixels - 1) * s_.stride_w + (s_.filter_w - 1) * s_.dilation_w;
    const bool interior = first >= 0 && last < s_.in_w && x + kGroupPixels <= s_.out_w;
    const int64_t taps = s_.taps();
    int64_t kx = 0;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const T** to = pointers_ + tap * kGroupPixels;
      const int64_t in_x = first + kx * s_.dilation_w;
      if (rows_[tap] == nullptr) {
        for (int64_t p = 0; p < kGroupPixels; ++p) to[p] = padding_;
      } else if (interior) {
        for (int64_t p = 0; p < kGroupPixels; ++p) to[p] = rows_[tap] + (in_x + p * s_.stride_w) * s_.in_c;
      } else {
        for (int64_t p = 0; p < kGroupPixels; ++p) {
          const int64_t at = in_x + p * s_.stride_w;
          const bool inside = at >= 0 && at < s_.in_w && x + p < s_.out_w;
          to[p] = inside ? rows_[tap] + at * s_.in_c : padding_;
        }
      }
      if (++kx == s_.filter_w) kx = 0;
    }
  }

  /// kGroupPixels pointers a tap; one tap of padding follows the last, for kernels that take taps in pairs.
  const T* const* pointers() const { return pointers_; }

 private:
  const DepthwiseShape& s_;
  const T* input_;
  const T* padding_;
  const T* rows_[kMaxTaps];  // row of the input, or null outside it
  const T* pointers_[kGroupPixels * (kMaxTaps + 1)];
};

}  // namespace leadline::kernels
