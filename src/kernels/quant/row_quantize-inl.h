// SPDX-License-Identifier: Apache-2.0
// The vector loops behind quantization while running: the range of a row, and levels from values. Compiled once per
// instruction set; every one computes the same bits.
#include <hwy/highway.h>

#include <cstdint>

#include "kernels/gemm/tile-inl.h"
#include "kernels/quant/row_quantize.h"

#if defined(LEADLINE_KERNELS_QUANT_ROW_QUANTIZE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEADLINE_KERNELS_QUANT_ROW_QUANTIZE_INL_H
#undef LEADLINE_KERNELS_QUANT_ROW_QUANTIZE_INL_H
#else
#define LEADLINE_KERNELS_QUANT_ROW_QUANTIZE_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace row {

namespace hn = hwy::HWY_NAMESPACE;
using DF = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<DF>;
using VF = hn::Vec<DF>;
using VI = hn::Vec<DI>;
constexpr int64_t kLanes = HWY_LANES(float);

/// max(v, bound), and the bound where v is NaN.
HWY_INLINE VF at_least(VF v, VF bound) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Max(v, bound);  // the second operand when one is NaN
#else
  return hn::IfThenElse(hn::Gt(v, bound), v, bound);
#endif
}

/// min(v, bound), and the bound where v is NaN.
HWY_INLINE VF at_most(VF v, VF bound) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Min(v, bound);
#else
  return hn::IfThenElse(hn::Lt(v, bound), v, bound);
#endif
}

/// Smallest and largest of the values and 0; NaN is skipped.
HWY_INLINE RowRange range_of(const float* values, int64_t count) {
  const DF d;
  VF min = hn::Zero(d);
  VF max = hn::Zero(d);
  int64_t i = 0;
  if (count >= 8 * kLanes) {
    // Four chains, since one would wait for itself.
    VF min1 = min, min2 = min, min3 = min;
    VF max1 = max, max2 = max, max3 = max;
    for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
      const VF v0 = hn::LoadU(d, values + i);
      const VF v1 = hn::LoadU(d, values + i + kLanes);
      const VF v2 = hn::LoadU(d, values + i + 2 * kLanes);
      const VF v3 = hn::LoadU(d, values + i + 3 * kLanes);
      min = at_most(v0, min);
      max = at_least(v0, max);
      min1 = at_most(v1, min1);
      max1 = at_least(v1, max1);
      min2 = at_most(v2, min2);
      max2 = at_least(v2, max2);
      min3 = at_most(v3, min3);
      max3 = at_least(v3, max3);
    }
    min = hn::Min(hn::Min(min, min1), hn::Min(min2, min3));
    max = hn::Max(hn::Max(max, max1), hn::Max(max2, max3));
  }
  for (; i + kLanes <= count; i += kLanes) {
    const VF v = hn::LoadU(d, values + i);
    min = at_most(v, min);
    max = at_least(v, max);
  }
  if (i < count) {
    // The last vector overlaps the one before it, if there is one.
    const VF v = count >= kLanes ? hn::LoadU(d, values + count - kLanes) : load_part(d, values, count);
    min = at_most(v, min);
    max = at_least(v, max);
  }
  return {hn::GetLane(hn::MinOfLanes(d, min)), hn::GetLane(hn::MaxOfLanes(d, max))};
}

/// Writes level(values) as int8, saturated. `level` takes a vector of floats and returns one of int32 within int16.
template <class Level>
HWY_INLINE void write_levels(const float* values, int64_t count, const Level& level, int8_t* out) {
  const DF d;
  const hn::Rebind<int8_t, DI> d8;
  int64_t i = 0;
#if HWY_TARGET == HWY_AVX2
  // Four vectors at a time: narrowing one takes as many instructions as narrowing four.
  const hn::Repartition<int16_t, DI> d16;
  alignas(32) static constexpr int32_t kOrder[8] = {0, 4, 1, 5, 2, 6, 3, 7};
  const __m256i order = _mm256_load_si256(reinterpret_cast<const __m256i*>(kOrder));
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    const VI a = level(hn::LoadU(d, values + i));
    const VI b = level(hn::LoadU(d, values + i + kLanes));
    const VI c = level(hn::LoadU(d, values + i + 2 * kLanes));
    const VI e = level(hn::LoadU(d, values + i + 3 * kLanes));
    const __m256i bytes = _mm256_packs_epi16(hn::ReorderDemote2To(d16, a, b).raw, hn::ReorderDemote2To(d16, c, e).raw);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm256_permutevar8x32_epi32(bytes, order));
  }
#endif
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(hn::DemoteTo(d8, level(hn::LoadU(d, values + i))), d8, out + i);
  }
  if (i == count) return;
  if (count >= kLanes) {
    hn::StoreU(hn::DemoteTo(d8, level(hn::LoadU(d, values + count - kLanes))), d8, out + count - kLanes);
  } else {
    store_part(hn::DemoteTo(d8, level(load_part(d, values, count))), d8, out, count);
  }
}

/// Adding 1.5 * 2^23 to a float below 2^22 leaves the nearest integer, ties to even, in the low bits of the sum.
constexpr float kRound = 0x1.8p23F;
constexpr int32_t kRoundBits = 0x4B400000;

/// clamp(round_half_even(value * inverse), -128 - zero, 127 - zero) + zero; NaN becomes -128.
class EvenLevel {
 public:
  HWY_INLINE EvenLevel(float inverse, int32_t zero_point)
      : inverse_(hn::Set(DF(), inverse)),
        lo_(hn::Set(DF(), static_cast<float>(-128 - zero_point))),
        hi_(hn::Set(DF(), static_cast<float>(127 - zero_point))),
        back_(hn::Set(DI(), zero_point - kRoundBits)) {}
  // The bounds are integers, so clamping before the rounding changes nothing.
  HWY_INLINE VI operator()(VF value) const {
    const VF clamped = at_most(at_least(hn::Mul(value, inverse_), lo_), hi_);
    return hn::Add(hn::BitCast(DI(), hn::Add(clamped, hn::Set(DF(), kRound))), back_);
  }

 private:
  VF inverse_;
  VF lo_;
  VF hi_;
  VI back_;
};

/// Half is added and the fraction cut off, before the zero point: TFLite's vector code, not quite std::round.
class CutLevel {
 public:
  HWY_INLINE CutLevel(float inverse, int32_t zero_point)
      : inverse_(hn::Set(DF(), inverse)), back_(hn::Set(DI(), zero_point - kRoundBits)) {}
  HWY_INLINE VI operator()(VF value) const {
    const DF d;
    const VF level = at_most(at_least(hn::Mul(value, inverse_), hn::Set(d, -256.0F)), hn::Set(d, 256.0F));
    const VF cut = hn::Trunc(hn::Add(level, hn::CopySignToAbs(hn::Set(d, 0.5F), level)));
    return hn::Add(hn::BitCast(DI(), hn::Add(cut, hn::Set(d, kRound))), back_);
  }

 private:
  VF inverse_;
  VI back_;
};

/// clamp(std::round(value * inverse), -127, 127); NaN becomes -127.
class AwayLevel {
 public:
  HWY_INLINE explicit AwayLevel(float inverse) : inverse_(hn::Set(DF(), inverse)) {}
  HWY_INLINE VI operator()(VF value) const {
    const DF d;
    const VF level = at_most(at_least(hn::Mul(value, inverse_), hn::Set(d, -127.0F)), hn::Set(d, 127.0F));
    const VF cut = hn::Trunc(level);
    const VF rest = hn::Sub(level, cut);  // exact
    const VF step = hn::CopySignToAbs(hn::Set(d, 1.0F), level);
    const VF away = hn::Add(cut, hn::IfThenElseZero(hn::Ge(hn::Abs(rest), hn::Set(d, 0.5F)), step));
    return hn::Sub(hn::BitCast(DI(), hn::Add(away, hn::Set(d, kRound))), hn::Set(DI(), kRoundBits));
  }

 private:
  VF inverse_;
};

}  // namespace row
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#endif
