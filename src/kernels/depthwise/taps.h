// SPDX-License-Identifier: Apache-2.0
// Where the taps of a depthwise filter lie for a group of neighbouring output pixels. Lives on the stack.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/depthwise/depthwise.h"

namespace leadline::kernels {

inline constexpr int64_t kMaxTaps = 128;        // bounds the tables on the stack
inline constexpr int64_t kGroupPixels = 4;      // pixels that share each load of the filter
inline constexpr int64_t kChunkChannels = 256;  // channels per pass: bounds the padding row, keeps filters in cache

/// What one call computes: rows of shape.rows(), and of these the output channels [channel_begin, channel_end). Where
/// channels are cut, each side has at least kChannelUnit of them, and the cut is at a multiple of it: vectors that
/// overlap their neighbour at the end of the tensor stay inside their part.
struct DepthwisePart {
  int64_t row_begin = 0, row_end = 0;
  int64_t channel_begin = 0, channel_end = 0;
};

inline constexpr int64_t kChannelUnit = 64;  // a cache line of bytes, and a multiple of every vector

/// Calls run(DepthwisePart) for parts of the output, in parallel. They are bands of rows; where rows are few, ranges of
/// channels, if the longest part gets shorter: 7 rows give two threads 4 and 3, and each prepares all filters.
template <typename Run>
void split_depthwise(const DepthwiseShape& s, ThreadPool& pool, const Run& run) {
  constexpr int64_t kMinPartMacs = 30'000;
  constexpr int64_t kFilterPixels = 4;  // preparing a filter takes about as long as so many pixels
  const int64_t channels = s.out_c();
  const int64_t row_macs = std::max<int64_t>(1, s.out_w * channels * s.taps());
  const int64_t most = std::clamp<int64_t>(s.rows() / (kMinPartMacs / row_macs + 1), 1, pool.size());
  const int64_t units = s.multiplier == 1 ? channels / kChannelUnit : 0;
  const int64_t wide = std::clamp<int64_t>(s.rows() * row_macs / kMinPartMacs, 1, pool.size());
  const int64_t parts = std::clamp<int64_t>(units, 1, wide);
  const auto begin_of = [&](int64_t part) { return part == parts ? channels : units * part / parts * kChannelUnit; };
  const int64_t by_rows = ((s.rows() + most - 1) / most * s.out_w + kFilterPixels) * channels;
  const int64_t by_channels = (s.rows() * s.out_w + kFilterPixels) * (channels - begin_of(parts - 1));
  if (parts > 1 && by_channels < by_rows - by_rows / 16) {
    pool.parallel_for(
        parts, 1, [&](int64_t begin, int64_t end) { run(DepthwisePart{0, s.rows(), begin_of(begin), begin_of(end)}); });
  } else {
    pool.parallel_for(s.rows(), kMinPartMacs / row_macs + 1,
                      [&](int64_t begin, int64_t end) { run(DepthwisePart{begin, end, 0, channels}); });
  }
}

/// First channel of the chunk that begins at `c`: the last chunk moves back to be whole, and recomputes a few channels.
inline int64_t chunk_begin(int64_t c, int64_t channels) {
  return std::min(c, std::max<int64_t>(0, channels - kChunkChannels));
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
