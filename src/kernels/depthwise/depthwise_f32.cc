// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution in float32: vectors of channels for four neighbouring pixels at a time.
#include <algorithm>

#include "kernels/depthwise/depthwise.h"
#include "kernels/depthwise/taps.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/depthwise/depthwise_f32.cc"
#include "kernels/all_targets.h"
#include "kernels/gemm/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Where the taps of a group of pixels are when all lie inside the input: at even distances.
struct InnerTaps {
  const float* origin;  // the first tap of the first pixel
  int64_t pixel, row, column;
};

/// Adds one tap of each pixel; input(p) is where pixel p has it.
template <int Vectors, int Pixels, class D, class Input>
HWY_INLINE void add_tap(D d, const float* filter, const Input& input, Accumulators<hn::Vec<D>, Pixels, Vectors>& acc) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  unroll<Vectors>([&](auto v) HWY_ATTR {
    const hn::Vec<D> weight = hn::LoadU(d, filter + v * lanes);
    unroll<Pixels>([&](auto p) HWY_ATTR {
      acc.template at<p, v>() = hn::MulAdd(hn::LoadU(d, input(p) + v * lanes), weight, acc.template at<p, v>());
    });
  });
}

// The taps are summed column by column, as XNNPACK sums: what follows may round at a boundary, and then the last bit
// counts.
template <int Vectors, int Pixels, class D>
HWY_INLINE void add_taps(D d, const DepthwiseShape& s, const float* filter, const InnerTaps& taps, int64_t c,
                         Accumulators<hn::Vec<D>, Pixels, Vectors>& acc) {
  const float* column = taps.origin + c;
  const int64_t filter_row = s.filter_w * s.in_c;
  for (int64_t kx = 0; kx < s.filter_w; ++kx, column += taps.column, filter += s.in_c) {
    const float* at = column;
    const float* weights = filter;
    for (int64_t ky = 0; ky < s.filter_h; ++ky, at += taps.row, weights += filter_row) {
      add_tap<Vectors, Pixels>(d, weights, [&](int64_t p) HWY_ATTR { return at + p * taps.pixel; }, acc);
    }
  }
}

template <int Vectors, int Pixels, class D>
HWY_INLINE void add_taps(D d, const DepthwiseShape& s, const float* filter, const float* const* taps, int64_t c,
                         Accumulators<hn::Vec<D>, Pixels, Vectors>& acc) {
  for (int64_t kx = 0; kx < s.filter_w; ++kx) {
    for (int64_t tap = kx; tap < s.taps(); tap += s.filter_w) {
      const float* const* inputs = taps + tap * kGroupPixels;
      add_tap<Vectors, Pixels>(d, filter + tap * s.in_c, [&](int64_t p) HWY_ATTR { return inputs[p] + c; }, acc);
    }
  }
}

// Vectors vectors of channels from `c` (counted from the chunk) for the group's pixels; stores `pixels` of them.
template <int Vectors, int Pixels, class D, class Taps>
HWY_INLINE void channels(D d, const DepthwiseF32& conv, const Taps& taps, int64_t channel, int64_t c, int64_t pixels,
                         float* out) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t stride = conv.shape.in_c;
  Accumulators<V, Pixels, Vectors> acc;
  unroll<Vectors>([&](auto v) HWY_ATTR {
    const V bias = conv.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, conv.bias + channel + c + v * lanes);
    unroll<Pixels>([&](auto p) HWY_ATTR { acc.template at<p, v>() = bias; });
  });
  add_taps<Vectors, Pixels>(d, conv.shape, conv.filter + channel + c, taps, c, acc);
  const V lo = hn::Set(d, conv.lo);
  const V hi = hn::Set(d, conv.hi);
  unroll<Pixels>([&](auto p) HWY_ATTR {
    if (p >= pixels) return;
    unroll<Vectors>([&](auto v) HWY_ATTR {
      hn::StoreU(clamp_keeping_nan(acc.template at<p, v>(), lo, hi), d, out + p * stride + c + v * lanes);
    });
  });
}

/// A chunk of `count` channels of the group's pixels.
template <int Pixels, class D, class Taps>
HWY_INLINE void group(D d, const DepthwiseF32& conv, const Taps& taps, int64_t channel, int64_t count, int64_t pixels,
                      float* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + 2 * lanes <= count; c += 2 * lanes) channels<2, Pixels>(d, conv, taps, channel, c, pixels, out);
  for (; c + lanes <= count; c += lanes) channels<1, Pixels>(d, conv, taps, channel, c, pixels, out);
  // The last vector overlaps the one before it; both give the same values.
  if (c < count) channels<1, Pixels>(d, conv, taps, channel, count - lanes, pixels, out);
}

/// A chunk of `count` channels of pixels of one output row.
template <class D>
void run_row(D d, const DepthwiseF32& conv, TapTable<float>& table, int64_t row, IndexRange columns, int64_t channel,
             int64_t count) {
  const DepthwiseShape& s = conv.shape;
  const int64_t y = row % s.out_h * s.stride_h - s.pad_top;
  const bool rows_inside = y >= 0 && y + (s.filter_h - 1) * s.dilation_h < s.in_h;
  const int64_t span = (kGroupPixels - 1) * s.stride_w + (s.filter_w - 1) * s.dilation_w;
  const float* line = conv.input + (row / s.out_h * s.in_h + y) * s.in_w * s.in_c + channel;
  table.set_row(row, channel);
  for (int64_t x = columns.begin; x < columns.end; x += kGroupPixels) {
    const int64_t pixels = std::min(kGroupPixels, columns.end - x);
    const int64_t first = x * s.stride_w - s.pad_left;
    float* out = conv.output + (row * s.out_w + x) * s.in_c + channel;
    if (rows_inside && first >= 0 && first + span < s.in_w && pixels == kGroupPixels) {
      const InnerTaps taps{line + first * s.in_c, s.stride_w * s.in_c, s.dilation_h * s.in_w * s.in_c,
                           s.dilation_w * s.in_c};
      group<kGroupPixels>(d, conv, taps, channel, count, kGroupPixels, out);
      continue;
    }
    table.set_pixels(x);
    if (pixels > 2) {
      group<kGroupPixels>(d, conv, table.pointers(), channel, count, pixels, out);
    } else {
      group<2>(d, conv, table.pointers(), channel, count, pixels, out);
    }
  }
}

template <class D>
void band_with(D d, const DepthwiseF32& conv, const DepthwisePart& part) {
  const DepthwiseShape& s = conv.shape;
  const float padding[kChunkChannels] = {};
  TapTable<float> table(s, conv.input, padding);
  for (int64_t c0 = part.channels.begin; c0 < part.channels.end; c0 += kChunkChannels) {
    // A last chunk of less than a vector moves back, and recomputes a few channels.
    const int64_t channel = std::min(c0, part.channels.end - static_cast<int64_t>(hn::Lanes(d)));
    const int64_t count = std::min(kChunkChannels, part.channels.end - channel);
    for (int64_t row = part.rows.begin; row < part.rows.end; ++row) {
      run_row(d, conv, table, row, part.columns, channel, count);
    }
  }
}

float sum_taps(const DepthwiseF32& conv, const DepthwiseOutput& output, IndexRange taps, float sum) {
  const DepthwiseShape& s = conv.shape;
  const float* input = conv.input + output.channel / s.multiplier;
  const float* filter = conv.filter + output.channel;
  if (taps.begin == 0) sum = conv.bias == nullptr ? 0.0F : conv.bias[output.channel];
  for_taps(s, output, taps, [&](int64_t tap, int64_t at) { sum += input[at * s.in_c] * filter[tap * s.out_c()]; });
  return sum;
}

float clamped(const DepthwiseF32& conv, float sum) { return sum < conv.lo ? conv.lo : sum > conv.hi ? conv.hi : sum; }

void plain_band(const DepthwiseF32& conv, const DepthwisePart& part) {
  const DepthwiseShape& s = conv.shape;
  const IndexRange taps{0, s.taps()};
  for (int64_t row = part.rows.begin; row < part.rows.end; ++row) {
    for (int64_t x = part.columns.begin; x < part.columns.end; ++x) {
      float* out = conv.output + (row * s.out_w + x) * s.out_c();
      for (int64_t oc = part.channels.begin; oc < part.channels.end; ++oc) {
        out[oc] = clamped(conv, sum_taps(conv, {row, x, oc}, taps, 0.0F));
      }
    }
  }
}

void run_taps(const DepthwiseF32& conv, int64_t output, IndexRange taps, float& sum) {
  sum = sum_taps(conv, output_at(conv.shape, output), taps, sum);
  if (taps.end == conv.shape.taps()) conv.output[output] = clamped(conv, sum);
}

void band(const DepthwiseF32& conv, const DepthwisePart& part) {
  const DepthwiseShape& s = conv.shape;
  const hn::ScalableTag<float> wide;
  const hn::CappedTag<float, 8> middle;
  const hn::CappedTag<float, 4> narrow;
  if (s.multiplier != 1 || s.taps() > kMaxTaps || s.in_c < static_cast<int64_t>(hn::Lanes(narrow))) {
    plain_band(conv, part);
  } else if (s.in_c % static_cast<int64_t>(hn::Lanes(wide)) == 0) {
    band_with(wide, conv, part);
  } else if (s.in_c >= static_cast<int64_t>(hn::Lanes(middle))) {
    // Pixels that are not a whole number of AVX-512 vectors apart would make most of them cross a cache line.
    band_with(middle, conv, part);
  } else {
    band_with(narrow, conv, part);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {
namespace {
HWY_EXPORT(band);
HWY_EXPORT(run_taps);
}  // namespace

void depthwise_part(const DepthwiseF32& conv, const DepthwisePart& part) noexcept {
  HWY_DYNAMIC_DISPATCH(band)(conv, part);
}

void depthwise_taps(const DepthwiseF32& conv, int64_t output, IndexRange taps, float& sum) noexcept {
  HWY_DYNAMIC_DISPATCH(run_taps)(conv, output, taps, sum);
}

}  // namespace leadline::kernels
#endif  // HWY_ONCE
