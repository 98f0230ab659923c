// SPDX-License-Identifier: Apache-2.0
// Bilinear rows with Highway. Channels beyond a multiple of the vector's are computed with the last ones, some twice.
#include "kernels/resize/bilinear.h"

#include <type_traits>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/resize/bilinear.cc"
#include "kernels/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kBits = kResizeWeightBits;

/// Four neighbours, blended with the weight of the right column and of the lower row.
HWY_INLINE float blend(float top_left, float top_right, float bottom_left, float bottom_right, float wx, float wy) {
  const float top = top_left + (top_right - top_left) * wx;
  const float bottom = bottom_left + (bottom_right - bottom_left) * wx;
  return top + (bottom - top) * wy;
}

HWY_INLINE int32_t blend(int32_t top_left, int32_t top_right, int32_t bottom_left, int32_t bottom_right, int32_t wx,
                         int32_t wy) {
  const int32_t top = top_left * (1 << kBits) + (top_right - top_left) * wx;
  const int32_t bottom = bottom_left * (1 << kBits) + (bottom_right - bottom_left) * wx;
  return (top * (1 << kBits) + (bottom - top) * wy + (1 << (2 * kBits - 1))) >> (2 * kBits);
}

template <typename T, typename Weight>
void scalar_row(const BilinearRow<T, Weight>& r) {
  T* out = r.out;
  for (int64_t x = 0; x < r.pixels; ++x, out += r.channels) {
    const ResizeTap<Weight> tap = r.columns[x];
    const int64_t left = tap.first * r.channels;
    const int64_t right = tap.second * r.channels;
    for (int64_t c = 0; c < r.channels; ++c) {
      out[c] = static_cast<T>(
          blend(r.top[left + c], r.top[right + c], r.bottom[left + c], r.bottom[right + c], tap.weight, r.weight));
    }
  }
}

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

template <typename T, typename Weight>
void row(const BilinearRow<T, Weight>& r) noexcept {
  scalar_row(r);
}

#else

template <class D, class V = hn::Vec<D> >
HWY_INLINE V blend_lanes(D, V top_left, V top_right, V bottom_left, V bottom_right, V wx, V wy) {
  if constexpr (std::is_same_v<hn::TFromD<D>, float>) {
    const V top = hn::Add(top_left, hn::Mul(hn::Sub(top_right, top_left), wx));
    const V bottom = hn::Add(bottom_left, hn::Mul(hn::Sub(bottom_right, bottom_left), wx));
    return hn::Add(top, hn::Mul(hn::Sub(bottom, top), wy));
  } else {
    const V top = hn::Add(hn::ShiftLeft<kBits>(top_left), hn::Mul(hn::Sub(top_right, top_left), wx));
    const V bottom = hn::Add(hn::ShiftLeft<kBits>(bottom_left), hn::Mul(hn::Sub(bottom_right, bottom_left), wx));
    const V sum = hn::Add(hn::ShiftLeft<kBits>(top), hn::Mul(hn::Sub(bottom, top), wy));
    return hn::ShiftRight<2 * kBits>(hn::Add(sum, hn::Set(D(), 1 << (2 * kBits - 1))));
  }
}

template <class D, typename T>
HWY_INLINE hn::Vec<D> load(D d, const T* in) {
  if constexpr (std::is_same_v<T, float>) {
    return hn::LoadU(d, in);
  } else {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, D>(), in));
  }
}

template <class D, typename T>
HWY_INLINE void store(D d, hn::Vec<D> v, T* out) {
  if constexpr (std::is_same_v<T, float>) {
    hn::StoreU(v, d, out);
  } else {
    const hn::Rebind<T, D> narrow;
    hn::StoreU(hn::DemoteTo(narrow, v), narrow, out);
  }
}

/// D has lanes of Weight; there are at least as many channels.
template <class D, typename T, typename Weight>
HWY_INLINE void vector_row(D d, const BilinearRow<T, Weight>& r) {
  constexpr int64_t kLanes = hn::MaxLanes(D());
  const auto wy = hn::Set(d, r.weight);
  T* out = r.out;
  for (int64_t x = 0; x < r.pixels; ++x, out += r.channels) {
    const ResizeTap<Weight> tap = r.columns[x];
    const auto wx = hn::Set(d, tap.weight);
    const int64_t left = tap.first * r.channels;
    const int64_t right = tap.second * r.channels;
    for (int64_t c = 0; c < r.channels; c += kLanes) {
      const int64_t at = c + kLanes <= r.channels ? c : r.channels - kLanes;
      const auto blended = blend_lanes(d, load(d, r.top + left + at), load(d, r.top + right + at),
                                       load(d, r.bottom + left + at), load(d, r.bottom + right + at), wx, wy);
      store(d, blended, out + at);
    }
  }
}

template <typename T, typename Weight>
void row(const BilinearRow<T, Weight>& r) noexcept {
  const hn::ScalableTag<Weight> wide;
  const hn::CappedTag<Weight, 4> narrow;
  if (r.channels >= static_cast<int64_t>(hn::MaxLanes(wide))) return vector_row(wide, r);
  if (r.channels >= static_cast<int64_t>(hn::MaxLanes(narrow))) return vector_row(narrow, r);
  scalar_row(r);
}

#endif

BilinearRowFunction<float, float> choose_f32() { return row<float, float>; }
BilinearRowFunction<int8_t, int32_t> choose_i8() { return row<int8_t, int32_t>; }
BilinearRowFunction<uint8_t, int32_t> choose_u8() { return row<uint8_t, int32_t>; }

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
BilinearRowFunction<float, float> bilinear_row<float, float>() noexcept {
  return HWY_DYNAMIC_DISPATCH(choose_f32)();
}
template <>
BilinearRowFunction<int8_t, int32_t> bilinear_row<int8_t, int32_t>() noexcept {
  return HWY_DYNAMIC_DISPATCH(choose_i8)();
}
template <>
BilinearRowFunction<uint8_t, int32_t> bilinear_row<uint8_t, int32_t>() noexcept {
  return HWY_DYNAMIC_DISPATCH(choose_u8)();
}

}  // namespace leadline::kernels
#endif
