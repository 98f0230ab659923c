// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of int16 activations with int8 filters: a panel of channels of one output at a time, tap by
// tap in int32, which holds the sum of kMaxTaps of the largest products.
#include <algorithm>
#include <cmath>

#include "kernels/depthwise/depthwise.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/depthwise/depthwise_i16.cc"
#include "kernels/all_targets.h"
#include "kernels/gemm/finish_i16-inl.h"
#include "kernels/gemm/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The taps of an output that lie inside the input.
struct Inside {
  IndexRange rows;
  IndexRange columns;
  const int16_t* image = nullptr;
  int64_t first = 0;  // where in it tap (0, 0) lies, inside or not
};

// Taps `tap` of `count` with input[first + tap * dilation] in [0, size).
IndexRange taps_inside(int64_t first, int64_t dilation, int64_t count, int64_t size) {
  const int64_t begin = first >= 0 ? 0 : (-first + dilation - 1) / dilation;
  const int64_t end = first >= size ? 0 : (size - first + dilation - 1) / dilation;
  return {std::min(begin, count), std::clamp(end, std::min(begin, count), count)};
}

// The sums of Count channels, a power of two, from `channel` on.
template <int Count>
HWY_INLINE void add_taps(const DepthwiseI16& conv, const Inside& inside, int64_t channel, double* sums) {
  constexpr int kLanes = Count < HWY_LANES(int32_t) ? Count : HWY_LANES(int32_t);
  constexpr int kVectors = Count / kLanes;
  using D32 = hn::CappedTag<int32_t, Count>;
  const DepthwiseShape& s = conv.shape;
  const D32 d;
  const hn::Rebind<int16_t, D32> d16;
  const hn::Rebind<int8_t, D32> d8;
  Accumulators<hn::Vec<D32>, 1, kVectors> acc;
  unroll<kVectors>([&](auto v) HWY_ATTR { acc.template at<0, v>() = hn::Zero(d); });
  for (int64_t y = inside.rows.begin; y < inside.rows.end; ++y) {
    for (int64_t x = inside.columns.begin; x < inside.columns.end; ++x) {
      const int16_t* in =
          inside.image + inside.first + (y * s.dilation_h * s.in_w + x * s.dilation_w) * s.in_c + channel;
      const int8_t* filter = conv.filter + (y * s.filter_w + x) * s.in_c + channel;
      unroll<kVectors>([&](auto v) HWY_ATTR {
        const auto values = hn::PromoteTo(d, hn::LoadU(d16, in + v * kLanes));
        const auto weights = hn::PromoteTo(d, hn::LoadU(d8, filter + v * kLanes));
        acc.template at<0, v>() = hn::Add(acc.template at<0, v>(), hn::Mul(values, weights));
      });
    }
  }
  unroll<kVectors>([&](auto v) HWY_ATTR { put_sums(d, acc.template at<0, v>(), false, sums + v * kLanes); });
}

int32_t one_channel(const DepthwiseI16& conv, const Inside& inside, int64_t channel) {
  const DepthwiseShape& s = conv.shape;
  int32_t sum = 0;
  for (int64_t y = inside.rows.begin; y < inside.rows.end; ++y) {
    for (int64_t x = inside.columns.begin; x < inside.columns.end; ++x) {
      sum += inside.image[inside.first + (y * s.dilation_h * s.in_w + x * s.dilation_w) * s.in_c + channel] *
             conv.filter[(y * s.filter_w + x) * s.in_c + channel];
    }
  }
  return sum;
}

// The sums of at most kWidePanel channels.
HWY_INLINE void add_panel(const DepthwiseI16& conv, const Inside& inside, int64_t channel, int64_t count,
                          double* sums) {
  if (HWY_LIKELY(count == kWidePanel)) return add_taps<kWidePanel>(conv, inside, channel, sums);
  int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; j + 8 <= count; j += 8) add_taps<8>(conv, inside, channel + j, sums + j);
  for (; j + 4 <= count; j += 4) add_taps<4>(conv, inside, channel + j, sums + j);
#endif
  for (; j < count; ++j) sums[j] = static_cast<double>(one_channel(conv, inside, channel + j));
}

void part(const DepthwiseI16& conv, const DepthwisePart& part) {
  const DepthwiseShape& s = conv.shape;
  HWY_ALIGN double sums[kWidePanel];
  for (int64_t row = part.rows.begin; row < part.rows.end; ++row) {
    const int64_t top = row % s.out_h * s.stride_h - s.pad_top;
    const int16_t* image = conv.input + row / s.out_h * s.in_h * s.in_w * s.in_c;
    for (int64_t x = part.columns.begin; x < part.columns.end; ++x) {
      const int64_t left = x * s.stride_w - s.pad_left;
      const Inside inside{taps_inside(top, s.dilation_h, s.filter_h, s.in_h),
                          taps_inside(left, s.dilation_w, s.filter_w, s.in_w), image, (top * s.in_w + left) * s.in_c};
      int16_t* out = conv.output + (row * s.out_w + x) * s.in_c;
      for (int64_t channel = part.channels.begin; channel < part.channels.end; channel += kWidePanel) {
        const int64_t count = std::min(kWidePanel, part.channels.end - channel);
        add_panel(conv, inside, channel, count, sums);
        finish_panel(conv.finish, sums, channel, count, out + channel);
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {
namespace {

HWY_EXPORT(part);

}  // namespace

void depthwise_part(const DepthwiseI16& conv, const DepthwisePart& p) noexcept { HWY_DYNAMIC_DISPATCH(part)(conv, p); }

}  // namespace leadline::kernels
#endif  // HWY_ONCE
