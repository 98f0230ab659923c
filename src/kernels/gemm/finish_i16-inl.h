// SPDX-License-Identifier: Apache-2.0
// From exact sums of int16 products to output levels, kWidePanel channels at a time, in float64 (see kWideMaxDepth).
// Compiled once per instruction set.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/gemm/gemm_i16.h"

#if defined(LEADLINE_KERNELS_GEMM_FINISH_I16_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEADLINE_KERNELS_GEMM_FINISH_I16_INL_H
#undef LEADLINE_KERNELS_GEMM_FINISH_I16_INL_H
#else
#define LEADLINE_KERNELS_GEMM_FINISH_I16_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {

/// Stores a vector of int32 sums as float64, or adds it to what is there.
template <class D32, class V32>
HWY_INLINE void put_sums(D32 d32, V32 sums, bool add, double* to) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET == HWY_SCALAR
  static_cast<void>(d32);
  const hn::ScalableTag<double> d;
  const auto value = hn::PromoteTo(d, sums);
  hn::Store(add ? hn::Add(value, hn::Load(d, to)) : value, d, to);
#else
  const hn::Half<D32> half;
  const hn::Rebind<double, hn::Half<D32> > d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(half));
  static_cast<void>(d32);
  auto low = hn::PromoteTo(d, hn::LowerHalf(half, sums));
  auto high = hn::PromoteTo(d, hn::UpperHalf(half, sums));
  if (add) {
    low = hn::Add(low, hn::LoadU(d, to));
    high = hn::Add(high, hn::LoadU(d, to + lanes));
  }
  hn::StoreU(low, d, to);
  hn::StoreU(high, d, to + lanes);
#endif
}

/// The levels of Count channels, a power of two, from `channel` on.
template <reference::WideRounding Rounding, int Count>
HWY_INLINE void finish_vectors(const WideFinish& finish, const double* sums, int64_t channel, int16_t* levels) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<double, Count> d;
  const hn::Rebind<int32_t, decltype(d)> d32;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto lo = hn::Set(d, static_cast<double>(finish.lo));
  const auto hi = hn::Set(d, static_cast<double>(finish.hi));
  HWY_ALIGN int32_t wide[Count];
  for (int64_t j = 0; j < Count; j += lanes) {
    auto value = hn::LoadU(d, sums + j);
    if (finish.bias != nullptr) value = hn::Add(value, hn::LoadU(d, finish.bias + channel + j));
    value = hn::Mul(value, hn::LoadU(d, finish.factor + channel + j));
    if constexpr (Rounding == reference::WideRounding::kShortFactor) {
      value = hn::Floor(hn::Add(value, hn::Set(d, 0.5)));
    } else {
      // Halves go away from zero, and nothing else does: what is cut off is exact.
      const auto whole = hn::Trunc(value);
      const auto up = hn::Ge(hn::Abs(hn::Sub(value, whole)), hn::Set(d, 0.5));
      value = hn::Add(whole, hn::IfThenElseZero(up, hn::CopySign(hn::Set(d, 1.0), value)));
    }
    value = hn::Min(hn::Max(value, lo), hi);
    hn::StoreU(hn::DemoteTo(d32, value), d32, wide + j);
  }
  for (int64_t j = 0; j < Count; ++j) levels[j] = static_cast<int16_t>(wide[j]);
}

/// One channel, in integers.
inline int16_t finish_channel(const WideFinish& finish, double of_products, int64_t channel) {
  const double sum = of_products + (finish.bias == nullptr ? 0.0 : finish.bias[channel]);
  const auto whole = static_cast<int64_t>(sum);
  int64_t level = 0;
  if (finish.rounding == reference::WideRounding::kNarrowSum) {
    level = multiply(saturate_i32(whole), finish.multiplier[channel]);
  } else if (finish.rounding == reference::WideRounding::kShortFactor) {
    level = multiply_wide(whole, finish.multiplier[channel]);
  } else {
    level = saturate_i32(static_cast<int64_t>(std::clamp(std::round(sum * finish.factor[channel]), -0x1p31, 0x1p31)));
  }
  return static_cast<int16_t>(std::clamp<int64_t>(level, finish.lo, finish.hi));
}

template <reference::WideRounding Rounding>
HWY_INLINE void finish_range(const WideFinish& finish, const double* sums, int64_t channel, int64_t count,
                             int16_t* levels) {
  if (HWY_LIKELY(count == kWidePanel)) return finish_vectors<Rounding, kWidePanel>(finish, sums, channel, levels);
  int64_t j = 0;
  if (count >= 8) {
    finish_vectors<Rounding, 8>(finish, sums, channel, levels);
    j = 8;
  }
  if (count - j >= 4) {
    finish_vectors<Rounding, 4>(finish, sums + j, channel + j, levels + j);
    j += 4;
  }
  for (; j < count; ++j) levels[j] = finish_channel(finish, sums[j], channel + j);
}

/// The levels of `count` channels from `channel` on, kWidePanel at most.
HWY_INLINE void finish_panel(const WideFinish& finish, const double* sums, int64_t channel, int64_t count,
                             int16_t* levels) {
  using reference::WideRounding;
  if (finish.rounding == WideRounding::kReal) {
    finish_range<WideRounding::kReal>(finish, sums, channel, count, levels);
  } else if (finish.rounding == WideRounding::kShortFactor && (finish.exact == nullptr || finish.exact[channel] == 0)) {
    finish_range<WideRounding::kShortFactor>(finish, sums, channel, count, levels);
  } else {
    for (int64_t j = 0; j < count; ++j) levels[j] = finish_channel(finish, sums[j], channel + j);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#endif
