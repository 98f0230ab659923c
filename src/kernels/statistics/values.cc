// SPDX-License-Identifier: Apache-2.0
#include "kernels/statistics/values.h"

#include <cmath>
#include <cstring>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/statistics/values.cc"
#include "kernels/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;
using V = hn::Vec<D>;
using VI = hn::Vec<DI>;
constexpr int64_t kLanes = HWY_LANES(float);

// Bits without the sign, as a signed integer: never negative, and ordered as magnitudes are.
HWY_INLINE VI magnitude(V v) { return hn::BitCast(DI(), hn::Abs(v)); }

Extremes extremes(const float* values, int64_t count) {
  const D d;
  const DI di;
  const V first = hn::Set(d, values[0]);
  V min0 = first, min1 = first, max0 = first, max1 = first;
  VI top0 = magnitude(first), top1 = top0;
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    const V a = hn::LoadU(d, values + i);
    const V b = hn::LoadU(d, values + i + kLanes);
    min0 = hn::Min(min0, a);
    min1 = hn::Min(min1, b);
    max0 = hn::Max(max0, a);
    max1 = hn::Max(max1, b);
    top0 = hn::Max(top0, magnitude(a));
    top1 = hn::Max(top1, magnitude(b));
  }
  for (; i < count; ++i) {
    const V a = hn::Set(d, values[i]);
    min0 = hn::Min(min0, a);
    max0 = hn::Max(max0, a);
    top0 = hn::Max(top0, magnitude(a));
  }
  Extremes result;
  // + 0: which zero survives a minimum depends on the order.
  result.min = hn::GetLane(hn::MinOfLanes(d, hn::Min(min0, min1))) + 0.0F;
  result.max = hn::GetLane(hn::MaxOfLanes(d, hn::Max(max0, max1))) + 0.0F;
  result.magnitude = static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(di, hn::Max(top0, top1))));
  return result;
}

// The product is exact but for results below every bin's width, which stay there.
HWY_INLINE VI bins_of(V v, V per_unit) {
  const DI di;
  const V x = hn::Add(v, hn::Zero(D()));  // -0 has no side of its own
  const VI side = hn::And(hn::ShiftRight<31>(hn::BitCast(di, x)), hn::Set(di, kBinsPerSide));
  return hn::Or(hn::ConvertTo(di, hn::Mul(hn::Abs(x), per_unit)), side);
}

void number_bins(const float* values, int64_t count, float per_unit, uint16_t* bins) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const D d;
  const V scale = hn::Set(d, per_unit);
  const hn::Repartition<int16_t, D> narrow;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    const VI a = bins_of(hn::LoadU(d, values + i), scale);
    const VI b = bins_of(hn::LoadU(d, values + i + kLanes), scale);
    hn::StoreU(hn::ReorderDemote2To(narrow, a, b), narrow, reinterpret_cast<int16_t*>(bins) + i);
  }
#endif
  for (; i < count; ++i) {
    const float x = values[i] + 0.0F;
    const auto bin = static_cast<uint32_t>(std::fabs(x) * per_unit);
    bins[i] = static_cast<uint16_t>(bin + (x < 0.0F ? kBinsPerSide : 0U));
  }
}

void fold_tables(uint16_t (*tables)[kBins], int64_t* counts) {
  // Sums first: the compiler vectorizes both loops, and neither has to widen more than once.
  constexpr int kPiece = 256;
  for (int begin = 0; begin < kBins; begin += kPiece) {
    uint32_t sums[kPiece];
    for (int i = 0; i < kPiece; ++i) {
      sums[i] = uint32_t{tables[0][begin + i]} + tables[1][begin + i] + tables[2][begin + i] + tables[3][begin + i];
    }
    for (int i = 0; i < kPiece; ++i) counts[begin + i] += sums[i];
  }
  std::memset(tables, 0, sizeof(uint16_t) * kTables * kBins);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {

HWY_EXPORT(extremes);
HWY_EXPORT(number_bins);
HWY_EXPORT(fold_tables);

Extremes extremes(const float* values, int64_t count) noexcept { return HWY_DYNAMIC_DISPATCH(extremes)(values, count); }

void number_bins(const float* values, int64_t count, float per_unit, uint16_t* bins) noexcept {
  HWY_DYNAMIC_DISPATCH(number_bins)(values, count, per_unit, bins);
}

void fold_tables(uint16_t (*tables)[kBins], int64_t* counts) noexcept {
  HWY_DYNAMIC_DISPATCH(fold_tables)(tables, counts);
}

}  // namespace leadline::kernels
#endif
