// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution in float32: vectors of channels for four neighbouring pixels at a time.
#include <algorithm>

#include "kernels/depthwise/depthwise.h"
#include "kernels/depthwise/taps.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/depthwise/depthwise_f32.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/gemm/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Vectors vectors of channels from `c` (counted from the chunk) for the group's pixels; stores `pixels` of them.
template <int Vectors, class D>
HWY_INLINE void channels(D d, const DepthwiseF32& conv, const float* const* taps, int64_t channel, int64_t c,
                         int64_t pixels, float* out) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t stride = conv.shape.in_c;
  const int64_t count = conv.shape.taps();
  Accumulators<V, kGroupPixels, Vectors> acc;
  unroll<Vectors>([&](auto v) HWY_ATTR {
    const V bias = conv.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, conv.bias + channel + c + v * lanes);
    unroll<kGroupPixels>([&](auto p) HWY_ATTR { acc.template at<p, v>() = bias; });
  });
  // Column by column, as XNNPACK sums: what follows may round at a boundary, and then the last bit counts.
  for (int64_t kx = 0; kx < conv.shape.filter_w; ++kx) {
    for (int64_t tap = kx; tap < count; tap += conv.shape.filter_w) {
      const float* filter = conv.filter + tap * stride + channel + c;
      const float* const* inputs = taps + tap * kGroupPixels;
      unroll<Vectors>([&](auto v) HWY_ATTR {
        const V weight = hn::LoadU(d, filter + v * lanes);
        unroll<kGroupPixels>([&](auto p) HWY_ATTR {
          acc.template at<p, v>() =
              hn::MulAdd(hn::LoadU(d, inputs[p] + c + v * lanes), weight, acc.template at<p, v>());
        });
      });
    }
  }
  const V lo = hn::Set(d, conv.lo);
  const V hi = hn::Set(d, conv.hi);
  unroll<kGroupPixels>([&](auto p) HWY_ATTR {
    if (p >= pixels) return;
    unroll<Vectors>([&](auto v) HWY_ATTR {
      hn::StoreU(clamp_keeping_nan(acc.template at<p, v>(), lo, hi), d, out + p * stride + c + v * lanes);
    });
  });
}

template <class D>
void band_with(D d, const DepthwiseF32& conv, int64_t row_begin, int64_t row_end) {
  const DepthwiseShape& s = conv.shape;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float padding[kChunkChannels] = {};
  TapTable<float> table(s, conv.input, padding);
  for (int64_t c0 = 0; c0 < s.in_c; c0 += kChunkChannels) {
    const int64_t channel = chunk_begin(c0, s.in_c);
    const int64_t count = std::min(kChunkChannels, s.in_c);
    for (int64_t row = row_begin; row < row_end; ++row) {
      table.set_row(row, channel);
      for (int64_t x = 0; x < s.out_w; x += kGroupPixels) {
        table.set_pixels(x);
        const int64_t pixels = std::min(kGroupPixels, s.out_w - x);
        float* out = conv.output + (row * s.out_w + x) * s.in_c + channel;
        int64_t c = 0;
        for (; c + 2 * lanes <= count; c += 2 * lanes) channels<2>(d, conv, table.pointers(), channel, c, pixels, out);
        for (; c + lanes <= count; c += lanes) channels<1>(d, conv, table.pointers(), channel, c, pixels, out);
        // The last vector overlaps the one before it; both give the same values.
        if (c < count) channels<1>(d, conv, table.pointers(), channel, count - lanes, pixels, out);
      }
    }
  }
}

float output_at(const DepthwiseF32& conv, int64_t row, int64_t x, int64_t oc) {
  const DepthwiseShape& s = conv.shape;
  const float* image = conv.input + row / s.out_h * s.in_h * s.in_w * s.in_c + oc / s.multiplier;
  float sum = conv.bias == nullptr ? 0.0F : conv.bias[oc];
  for (int64_t ky = 0; ky < s.filter_h; ++ky) {
    const int64_t in_y = row % s.out_h * s.stride_h - s.pad_top + ky * s.dilation_h;
    if (in_y < 0 || in_y >= s.in_h) continue;
    for (int64_t kx = 0; kx < s.filter_w; ++kx) {
      const int64_t in_x = x * s.stride_w - s.pad_left + kx * s.dilation_w;
      if (in_x < 0 || in_x >= s.in_w) continue;
      sum += image[(in_y * s.in_w + in_x) * s.in_c] * conv.filter[(ky * s.filter_w + kx) * s.out_c() + oc];
    }
  }
  if (sum < conv.lo) return conv.lo;
  return sum > conv.hi ? conv.hi : sum;
}

void plain_band(const DepthwiseF32& conv, int64_t row_begin, int64_t row_end) {
  const DepthwiseShape& s = conv.shape;
  float* out = conv.output + row_begin * s.out_w * s.out_c();
  for (int64_t row = row_begin; row < row_end; ++row) {
    for (int64_t x = 0; x < s.out_w; ++x) {
      for (int64_t oc = 0; oc < s.out_c(); ++oc) *out++ = output_at(conv, row, x, oc);
    }
  }
}

void band(const DepthwiseF32& conv, int64_t row_begin, int64_t row_end) {
  const DepthwiseShape& s = conv.shape;
  const hn::ScalableTag<float> wide;
  const hn::CappedTag<float, 4> narrow;
  if (s.multiplier != 1 || s.taps() > kMaxTaps || s.in_c < static_cast<int64_t>(hn::Lanes(narrow))) {
    plain_band(conv, row_begin, row_end);
  } else if (s.in_c >= static_cast<int64_t>(hn::Lanes(wide))) {
    band_with(wide, conv, row_begin, row_end);
  } else {
    band_with(narrow, conv, row_begin, row_end);
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
}  // namespace

void depthwise_f32_band(const DepthwiseF32& conv, int64_t row_begin, int64_t row_end) {
  HWY_DYNAMIC_DISPATCH(band)(conv, row_begin, row_end);
}

void depthwise_f32(const DepthwiseF32& conv, ThreadPool& pool) {
  pool.parallel_for(conv.shape.rows(), min_rows_per_part(conv.shape),
                    [&](int64_t begin, int64_t end) { depthwise_f32_band(conv, begin, end); });
}

}  // namespace leadline::kernels
#endif  // HWY_ONCE
