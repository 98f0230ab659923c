// SPDX-License-Identifier: Apache-2.0
// Pooling with Highway. An Op takes kUnit channels at once: start(), step() for every value of the window, finish().
// Channels beyond a multiple of kUnit are computed with the last kUnit channels, some of them twice.
#include "kernels/pooling/pooling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pooling/pooling.cc"
#include "kernels/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// One channel of one pixel: the definition of the results.
template <typename T, Pooling kPooling>
HWY_INLINE T pool_value(const PoolRow<T>& r, const PoolSpan& span, int64_t channel) {
  using Sum = std::conditional_t<std::is_same_v<T, float>, float, int32_t>;
  Sum sum = 0;
  T most = std::numeric_limits<T>::lowest();
  for (int64_t y = 0; y < r.rows; ++y) {
    const T* in = r.in + y * r.row_stride + channel;
    for (int64_t x = span.begin; x < span.end; ++x) {
      const T value = in[x * r.channels];
      sum += value;
      most = most < value ? value : most;
    }
  }
  if (kPooling == Pooling::kMax) return std::min(std::max(most, r.lo), r.hi);
  const auto count = static_cast<Sum>(r.rows * (span.end - span.begin));
  if constexpr (std::is_same_v<T, float>) return std::min(std::max(sum / count, r.lo), r.hi);
  const Sum rounded = (sum > 0 ? sum + static_cast<int32_t>(count) / 2 : sum - static_cast<int32_t>(count) / 2) / count;
  return static_cast<T>(std::clamp<Sum>(rounded, r.lo, r.hi));
}

template <typename T, Pooling kPooling>
HWY_INLINE void pool_values(const PoolRow<T>& r) {
  for (int64_t x = 0; x < r.pixels; ++x) {
    for (int64_t c = 0; c < r.channels; ++c) {
      r.out[x * r.channels + c] = pool_value<T, kPooling>(r, r.columns[x], c);
    }
  }
}

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

template <typename T, Pooling kPooling>
void pool(const PoolRow<T>& r) noexcept {
  pool_values<T, kPooling>(r);
}

#else

/// a > b ? a : b; b where one is NaN.
template <class V>
HWY_INLINE V larger(V a, V b) {
#if HWY_ARCH_X86
  return hn::Max(a, b);
#else
  return hn::IfThenElse(hn::Gt(a, b), a, b);
#endif
}

/// a < b ? a : b; b where one is NaN.
template <class V>
HWY_INLINE V smaller(V a, V b) {
#if HWY_ARCH_X86
  return hn::Min(a, b);
#else
  return hn::IfThenElse(hn::Lt(a, b), a, b);
#endif
}

template <class D>
struct MaxOp {
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;
  static constexpr int64_t kUnit = hn::MaxLanes(D());

  MaxOp(const PoolRow<T>& r, const PoolSpan&) : lo(hn::Set(D(), r.lo)), hi(hn::Set(D(), r.hi)) {}
  HWY_INLINE V start() const { return hn::Set(D(), std::numeric_limits<T>::lowest()); }
  HWY_INLINE V step(V most, const T* in) const { return larger(hn::LoadU(D(), in), most); }
  HWY_INLINE void finish(V most, T* out) const { hn::StoreU(smaller(hi, larger(lo, most)), D(), out); }

  V lo, hi;
};

template <class D>
struct AverageF32 {
  using V = hn::Vec<D>;
  static constexpr int64_t kUnit = hn::MaxLanes(D());

  AverageF32(const PoolRow<float>& r, const PoolSpan& s)
      : lo(hn::Set(D(), r.lo)),
        hi(hn::Set(D(), r.hi)),
        count(hn::Set(D(), static_cast<float>(r.rows * (s.end - s.begin)))) {}
  HWY_INLINE V start() const { return hn::Zero(D()); }
  HWY_INLINE V step(V sum, const float* in) const { return hn::Add(sum, hn::LoadU(D(), in)); }
  HWY_INLINE void finish(V sum, float* out) const {
    hn::StoreU(smaller(hi, larger(lo, hn::Div(sum, count))), D(), out);
  }

  V lo, hi, count;
};

/// Sums of T in the 16-bit lanes of D. The quotient is taken in float: the dividend is moved a quarter up from the
/// integer it is, which is more than the error of the product and less than the distance to the next multiple.
template <typename T, class D>
struct Average8 {
  using D32 = hn::Repartition<int32_t, D>;
  using DF = hn::RebindToFloat<D32>;
  using V = hn::Vec<D>;
  static constexpr int64_t kUnit = hn::MaxLanes(D());

  Average8(const PoolRow<T>& r, const PoolSpan& s)
      : lo(hn::Set(D32(), static_cast<int32_t>(r.lo))), hi(hn::Set(D32(), static_cast<int32_t>(r.hi))) {
    const auto count = static_cast<int32_t>(r.rows * (s.end - s.begin));
    half = hn::Set(DF(), static_cast<float>(count / 2) + 0.25F);
    inverse = hn::Set(DF(), 1.0F / static_cast<float>(count));
  }
  HWY_INLINE V start() const { return hn::Zero(D()); }
  HWY_INLINE V step(V sum, const T* in) const {
    return hn::Add(sum, hn::PromoteTo(D(), hn::LoadU(hn::Rebind<T, D>(), in)));
  }
  HWY_INLINE hn::Vec<D32> quotient(hn::Vec<D32> sum) const {
    const auto magnitude = hn::Add(hn::Abs(hn::ConvertTo(DF(), sum)), half);
    const auto rounded = hn::ConvertTo(D32(), hn::Mul(magnitude, inverse));
    const auto sign = hn::BroadcastSignBit(sum);
    return hn::Min(hn::Max(hn::Sub(hn::Xor(rounded, sign), sign), lo), hi);
  }
  HWY_INLINE void finish(V sum, T* out) const {
    const hn::Half<D> half_d;
    const hn::Rebind<T, D32> narrow;
    const auto low = quotient(hn::PromoteTo(D32(), hn::LowerHalf(half_d, sum)));
    const auto high = quotient(hn::PromoteTo(D32(), hn::UpperHalf(half_d, sum)));
    hn::StoreU(hn::DemoteTo(narrow, low), narrow, out);
    hn::StoreU(hn::DemoteTo(narrow, high), narrow, out + kUnit / 2);
  }

  hn::Vec<D32> lo, hi;
  hn::Vec<DF> half, inverse;
};

/// kUnits times kUnit channels from `channel` on.
template <int kUnits, class Op, typename T>
HWY_INLINE void pool_units(const Op& op, const PoolRow<T>& r, const PoolSpan& span, int64_t channel, T* out) {
  typename Op::V acc[kUnits];
#pragma GCC unroll 4
  for (int k = 0; k < kUnits; ++k) acc[k] = op.start();
  for (int64_t y = 0; y < r.rows; ++y) {
    const T* in = r.in + y * r.row_stride + span.begin * r.channels + channel;
    for (int64_t x = span.begin; x < span.end; ++x, in += r.channels) {
#pragma GCC unroll 4
      for (int k = 0; k < kUnits; ++k) acc[k] = op.step(acc[k], in + k * Op::kUnit);
    }
  }
#pragma GCC unroll 4
  for (int k = 0; k < kUnits; ++k) op.finish(acc[k], out + channel + k * Op::kUnit);
}

template <class Op, typename T>
HWY_INLINE void pool_pixels(const PoolRow<T>& r) {
  for (int64_t x = 0; x < r.pixels; ++x) {
    const PoolSpan span = r.columns[x];
    T* out = r.out + x * r.channels;
    const Op op(r, span);
    int64_t c = 0;
    for (; c + 4 * Op::kUnit <= r.channels; c += 4 * Op::kUnit) pool_units<4>(op, r, span, c, out);
    for (; c + Op::kUnit <= r.channels; c += Op::kUnit) pool_units<1>(op, r, span, c, out);
    if (c < r.channels) pool_units<1>(op, r, span, r.channels - Op::kUnit, out);
  }
}

/// All of a vector, or 16 bytes of it.
template <typename T, bool kSmall>
using TagOf = std::conditional_t<kSmall, hn::CappedTag<T, 16 / sizeof(T)>, hn::ScalableTag<T> >;

template <typename T, Pooling kPooling, bool kSmall>
auto op_type() {
  using Sum = std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>;
  if constexpr (kPooling == Pooling::kMax) {
    return static_cast<MaxOp<TagOf<T, kSmall> >*>(nullptr);
  } else if constexpr (std::is_same_v<T, float>) {
    return static_cast<AverageF32<TagOf<T, kSmall> >*>(nullptr);
  } else {
    return static_cast<Average8<T, TagOf<Sum, kSmall> >*>(nullptr);
  }
}

template <typename T, Pooling kPooling>
void pool(const PoolRow<T>& r) noexcept {
  using Wide = std::remove_pointer_t<decltype(op_type<T, kPooling, false>())>;
  using Narrow = std::remove_pointer_t<decltype(op_type<T, kPooling, true>())>;
  if (r.channels >= Wide::kUnit) return pool_pixels<Wide>(r);
  if (r.channels >= Narrow::kUnit) return pool_pixels<Narrow>(r);
  pool_values<T, kPooling>(r);
}

#endif

PoolRowFunction<float> choose_f32(Pooling pooling) {
  return pooling == Pooling::kMax ? pool<float, Pooling::kMax> : pool<float, Pooling::kAverage>;
}
PoolRowFunction<int8_t> choose_i8(Pooling pooling) {
  return pooling == Pooling::kMax ? pool<int8_t, Pooling::kMax> : pool<int8_t, Pooling::kAverage>;
}
PoolRowFunction<uint8_t> choose_u8(Pooling pooling) {
  return pooling == Pooling::kMax ? pool<uint8_t, Pooling::kMax> : pool<uint8_t, Pooling::kAverage>;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {

HWY_EXPORT(choose_f32);
HWY_EXPORT(choose_i8);
HWY_EXPORT(choose_u8);

template <>
PoolRowFunction<float> pool_row_function<float>(Pooling pooling) noexcept {
  return HWY_DYNAMIC_DISPATCH(choose_f32)(pooling);
}
template <>
PoolRowFunction<int8_t> pool_row_function<int8_t>(Pooling pooling) noexcept {
  return HWY_DYNAMIC_DISPATCH(choose_i8)(pooling);
}
template <>
PoolRowFunction<uint8_t> pool_row_function<uint8_t>(Pooling pooling) noexcept {
  return HWY_DYNAMIC_DISPATCH(choose_u8)(pooling);
}

}  // namespace leadline::kernels
#endif
