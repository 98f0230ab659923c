// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of the kernels, cut into pieces and split over threads.
// Invariant: results do not depend on pieces or threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/thread_pool.h"
#include "kernels/depthwise/depthwise.h"

namespace leadline::ops {

/// Calls run(DepthwisePart) for parts of the output, in parallel. They are bands of rows; where rows are few, ranges of
/// channels, if the longest part gets shorter: 7 rows give two threads 4 and 3, and each prepares all filters.
template <typename Run>
void split_depthwise(const kernels::DepthwiseShape& s, ThreadPool& pool, const Run& run) {
  constexpr int64_t kMinPartMacs = 30'000;
  constexpr int64_t kFilterPixels = 4;  // preparing a filter takes about as long as this many pixels
  const int64_t channels = s.out_c();
  const int64_t row_macs = std::max<int64_t>(1, s.out_w * channels * s.taps());
  const int64_t bands = std::clamp<int64_t>(s.rows() / (kMinPartMacs / row_macs + 1), 1, pool.size());
  const int64_t units = s.multiplier == 1 ? channels / kernels::kChannelUnit : 0;
  const int64_t wide = std::clamp<int64_t>(s.rows() * row_macs / kMinPartMacs, 1, pool.size());
  const int64_t ranges = std::clamp<int64_t>(units, 1, wide);
  const auto begin_of = [&](int64_t part) {
    return part == ranges ? channels : units * part / ranges * kernels::kChannelUnit;
  };
  const int64_t by_rows = ((s.rows() + bands - 1) / bands * s.out_w + kFilterPixels) * channels;
  const int64_t by_channels = (s.rows() * s.out_w + kFilterPixels) * (channels - begin_of(ranges - 1));
  const bool cut_channels = ranges > 1 && by_channels < by_rows - by_rows / 16;
  const int64_t parts = cut_channels ? ranges : bands;
  pool.for_pieces(parts, kWholePiece, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      kernels::DepthwisePart part{{0, s.rows()}, {0, s.out_w}, {0, channels}};
      if (cut_channels) {
        part.channels = {begin_of(i), begin_of(i + 1)};
      } else {
        part.rows = {s.rows() * i / parts, s.rows() * (i + 1) / parts};
      }
      run(part);
    }
  });
}

/// The whole convolution.
void convolve(const kernels::DepthwiseF32& conv, ThreadPool& pool);
void convolve(const kernels::DepthwiseI8& conv, ThreadPool& pool);
void convolve(const kernels::DepthwiseHybrid& conv, ThreadPool& pool);
void convolve(const kernels::DepthwiseI16& conv, ThreadPool& pool);

}  // namespace leadline::ops
