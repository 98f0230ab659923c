// SPDX-License-Identifier: Apache-2.0
// Conversion with Highway. What is left of a row after whole vectors takes the scalar definition.
#include "kernels/quant/convert.h"

#include <cmath>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quant/convert.cc"
#include "kernels/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The largest float below 0.5: adding 0.5 itself would round 0.49999997 up.
constexpr float kAlmostHalf = 0x1.fffffep-2F;

template <typename T>
HWY_INLINE T level_of(float value, const QuantizeRange& r) {
  constexpr bool kNanIsHigh = sizeof(T) == 1;
  const float quotient = value / r.scale;
  float x = kNanIsHigh ? (quotient < r.hi ? quotient : r.hi) : (quotient > r.lo ? quotient : r.lo);
  x = kNanIsHigh ? (x > r.lo ? x : r.lo) : (x < r.hi ? x : r.hi);
  return static_cast<T>(static_cast<int32_t>(x + std::copysign(kAlmostHalf, x)) + r.zero_point);
}

template <typename T>
void quantize(const float* in, T* out, int64_t count, const QuantizeRange& r) noexcept {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> d32;
  const hn::Rebind<T, decltype(d)> narrow;
  constexpr int64_t kLanes = HWY_LANES(float);
  const auto scale = hn::Set(d, r.scale);
  const auto lo = hn::Set(d, r.lo);
  const auto hi = hn::Set(d, r.hi);
  const auto half = hn::Set(d, kAlmostHalf);
  const auto zero = hn::Set(d32, r.zero_point);
  for (; i + kLanes <= count; i += kLanes) {
    const auto quotient = hn::Div(hn::LoadU(d, in + i), scale);
    const auto nan = hn::IsNaN(quotient);
    const auto x = hn::IfThenElse(nan, sizeof(T) == 1 ? hi : lo, hn::Max(hn::Min(quotient, hi), lo));
    const auto level = hn::ConvertTo(d32, hn::Add(x, hn::CopySignToAbs(half, x)));
    hn::StoreU(hn::DemoteTo(narrow, hn::Add(level, zero)), narrow, out + i);
  }
#endif
  for (; i < count; ++i) out[i] = level_of<T>(in[i], r);
}

template <typename T>
void dequantize(const T* in, float* out, int64_t count, float scale, int32_t zero_point) noexcept {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> d32;
  const hn::Rebind<T, decltype(d)> narrow;
  constexpr int64_t kLanes = HWY_LANES(float);
  const auto factor = hn::Set(d, scale);
  const auto zero = hn::Set(d32, zero_point);
  const auto convert = [&](int64_t at) HWY_ATTR {
    const auto level = hn::Sub(hn::PromoteTo(d32, hn::LoadU(narrow, in + at)), zero);
    hn::StoreU(hn::Mul(hn::ConvertTo(d, level), factor), d, out + at);
  };
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    convert(i);
    convert(i + kLanes);
    convert(i + 2 * kLanes);
    convert(i + 3 * kLanes);
  }
  for (; i + kLanes <= count; i += kLanes) convert(i);
#endif
  for (; i < count; ++i) out[i] = scale * static_cast<float>(in[i] - zero_point);
}

QuantizeRow<int8_t> quantize_i8() { return quantize<int8_t>; }
QuantizeRow<uint8_t> quantize_u8() { return quantize<uint8_t>; }
QuantizeRow<int16_t> quantize_i16() { return quantize<int16_t>; }
DequantizeRow<int8_t> dequantize_i8() { return dequantize<int8_t>; }
DequantizeRow<uint8_t> dequantize_u8() { return dequantize<uint8_t>; }
DequantizeRow<int16_t> dequantize_i16() { return dequantize<int16_t>; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {

HWY_EXPORT(quantize_i8);
HWY_EXPORT(quantize_u8);
HWY_EXPORT(quantize_i16);
HWY_EXPORT(dequantize_i8);
HWY_EXPORT(dequantize_u8);
HWY_EXPORT(dequantize_i16);

template <>
QuantizeRow<int8_t> quantize_row<int8_t>() noexcept {
  return HWY_DYNAMIC_DISPATCH(quantize_i8)();
}
template <>
QuantizeRow<uint8_t> quantize_row<uint8_t>() noexcept {
  return HWY_DYNAMIC_DISPATCH(quantize_u8)();
}
template <>
QuantizeRow<int16_t> quantize_row<int16_t>() noexcept {
  return HWY_DYNAMIC_DISPATCH(quantize_i16)();
}
template <>
DequantizeRow<int8_t> dequantize_row<int8_t>() noexcept {
  return HWY_DYNAMIC_DISPATCH(dequantize_i8)();
}
template <>
DequantizeRow<uint8_t> dequantize_row<uint8_t>() noexcept {
  return HWY_DYNAMIC_DISPATCH(dequantize_u8)();
}
template <>
DequantizeRow<int16_t> dequantize_row<int16_t>() noexcept {
  return HWY_DYNAMIC_DISPATCH(dequantize_i16)();
}

}  // namespace leadline::kernels
#endif
