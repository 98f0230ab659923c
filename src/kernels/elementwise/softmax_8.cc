// SPDX-License-Identifier: Apache-2.0
// 8-bit softmax with Highway.
#include "kernels/elementwise/softmax_8.h"

#include <algorithm>
#include <limits>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/softmax_8.cc"
#include "kernels/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kValues = 256;
constexpr float kLargest = 1024.0F;  // saturates with any zero point, and fits the 16 bits between the narrowings

template <typename T>
T row_max(const T* in, int64_t count) noexcept {
  T most = std::numeric_limits<T>::lowest();
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const hn::ScalableTag<T> d;
  constexpr int64_t kLanes = HWY_LANES(T);
  if (count >= kLanes) {
    auto v = hn::LoadU(d, in);
    for (i = kLanes; i + kLanes <= count; i += kLanes) v = hn::Max(v, hn::LoadU(d, in + i));
    HWY_ALIGN T lanes[kLanes];
    hn::Store(hn::Max(v, hn::LoadU(d, in + count - kLanes)), d, lanes);
    // Down to 16 bytes in vectors.
    const hn::CappedTag<T, 16> small;
    auto most_lanes = hn::Load(small, lanes);
    for (int64_t k = 16; k < kLanes; k += 16) most_lanes = hn::Max(most_lanes, hn::Load(small, lanes + k));
    hn::Store(most_lanes, small, lanes);
    return *std::max_element(lanes, lanes + 16);
  }
#endif
  for (; i < count; ++i) most = std::max(most, in[i]);
  return most;
}

template <typename T>
void levels(const float* values, float factor, int32_t zero_point, T* out) noexcept {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  for (int64_t i = 0; i < kValues; ++i) {
    const float product = values[i] * factor;
    const float limited = product < kLargest ? product : kLargest;
    const auto whole = static_cast<int32_t>(limited);
    const int32_t rounded = whole + (limited - static_cast<float>(whole) >= 0.5F ? 1 : 0);
    out[i] = static_cast<T>(std::clamp<int64_t>(int64_t{zero_point} + rounded, std::numeric_limits<T>::min(),
                                                std::numeric_limits<T>::max()));
  }
#else
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> d32;
  const hn::Rebind<T, decltype(d)> narrow;
  const auto by = hn::Set(d, factor);
  const auto largest = hn::Set(d, kLargest);
  const auto half = hn::Set(d, 0.5F);
  const auto zero = hn::Set(d32, zero_point);
  for (int64_t i = 0; i < kValues; i += HWY_LANES(float)) {
    const auto product = hn::Mul(hn::LoadU(d, values + i), by);
    const auto limited = hn::IfThenElse(hn::Lt(product, largest), product, largest);
    const auto whole = hn::ConvertTo(d32, limited);
    const auto up = hn::Ge(hn::Sub(limited, hn::ConvertTo(d, whole)), half);
    const auto rounded = hn::Sub(whole, hn::BitCast(d32, hn::VecFromMask(d, up)));
    hn::StoreU(hn::DemoteTo(narrow, hn::Add(rounded, zero)), narrow, out + i);
  }
#endif
}

RowMax8<int8_t> max_i8() { return row_max<int8_t>; }
RowMax8<uint8_t> max_u8() { return row_max<uint8_t>; }
SoftmaxLevels8<int8_t> levels_i8() { return levels<int8_t>; }
SoftmaxLevels8<uint8_t> levels_u8() { return levels<uint8_t>; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {

HWY_EXPORT(max_i8);
HWY_EXPORT(max_u8);
HWY_EXPORT(levels_i8);
HWY_EXPORT(levels_u8);

template <>
RowMax8<int8_t> row_max_8<int8_t>() noexcept {
  return HWY_DYNAMIC_DISPATCH(max_i8)();
}
template <>
RowMax8<uint8_t> row_max_8<uint8_t>() noexcept {
  return HWY_DYNAMIC_DISPATCH(max_u8)();
}
template <>
SoftmaxLevels8<int8_t> softmax_levels_8<int8_t>() noexcept {
  return HWY_DYNAMIC_DISPATCH(levels_i8)();
}
template <>
SoftmaxLevels8<uint8_t> softmax_levels_8<uint8_t>() noexcept {
  return HWY_DYNAMIC_DISPATCH(levels_u8)();
}

}  // namespace leadline::kernels
#endif
