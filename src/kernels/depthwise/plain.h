// SPDX-License-Identifier: Apache-2.0
// Plain loops of the 8-bit depthwise convolution, for filters that the fast kernel does not take. `Stage` is one of the
// output stages.
#pragma once

#include <cstdint>

#include "kernels/depthwise/depthwise.h"
#include "kernels/depthwise/taps.h"

namespace leadline::kernels {

/// Adds a range of taps to `start`; the first range starts from the bias.
template <typename T>
int32_t sum_taps(const DepthwiseI8& conv, const DepthwiseOutput& output, IndexRange taps, int32_t start) {
  const DepthwiseShape& s = conv.shape;
  const T* input = static_cast<const T*>(conv.input) + output.channel / s.multiplier;
  const T* filter = static_cast<const T*>(conv.filter) + output.channel;
  if (taps.begin == 0) start = conv.bias == nullptr ? 0 : conv.bias[output.channel];
  auto sum = static_cast<uint32_t>(start);
  for_taps(s, output, taps, [&](int64_t tap, int64_t at) {
    sum += static_cast<uint32_t>((input[at * s.in_c] - conv.input_zero_point) *
                                 (filter[tap * s.out_c()] - conv.filter_zero_point));
  });
  return static_cast<int32_t>(sum);
}

template <typename T, class Stage>
void plain_band(const DepthwiseI8& conv, const Stage& stage, const DepthwisePart& part) {
  const DepthwiseShape& s = conv.shape;
  const IndexRange taps{0, s.taps()};
  for (int64_t row = part.rows.begin; row < part.rows.end; ++row) {
    for (int64_t x = part.columns.begin; x < part.columns.end; ++x) {
      typename Stage::Element* out = stage.output() + (row * s.out_w + x) * s.out_c();
      for (int64_t oc = part.channels.begin; oc < part.channels.end; ++oc) {
        out[oc] = stage.plain(sum_taps<T>(conv, {row, x, oc}, taps, 0), oc);
      }
    }
  }
}

template <typename T, class Stage>
void run_taps_of(const DepthwiseI8& conv, const Stage& stage, int64_t output, IndexRange taps, int32_t& sum) {
  const DepthwiseOutput place = output_at(conv.shape, output);
  sum = sum_taps<T>(conv, place, taps, sum);
  if (taps.end == conv.shape.taps()) stage.output()[output] = stage.plain(sum, place.channel);
}

}  // namespace leadline::kernels
