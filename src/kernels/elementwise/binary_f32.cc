// SPDX-License-Identifier: Apache-2.0
// float32 binary rows with Highway: four vectors at a time, then one, then the rest through a small buffer, so that
// an element's result does not depend on its place in the row.
#include "kernels/elementwise/binary_f32.h"

#include <cstring>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/binary_f32.cc"
#include "kernels/all_targets.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = HWY_LANES(float);

template <BinaryF32 kOp>
HWY_INLINE V apply(V a, V b, V lo, V hi) {
  V r = a;
  if constexpr (kOp == BinaryF32::kAdd) r = hn::Add(a, b);
  if constexpr (kOp == BinaryF32::kSub) r = hn::Sub(a, b);
  if constexpr (kOp == BinaryF32::kMul) r = hn::Mul(a, b);
  if constexpr (kOp == BinaryF32::kDiv) r = hn::Div(a, b);
  if constexpr (kOp == BinaryF32::kSquaredDifference) {
    const V difference = hn::Sub(a, b);
    r = hn::Mul(difference, difference);
  }
  // A comparison and a choice: what Max and Min do with NaN and signed zeros differs between instruction sets.
  if constexpr (kOp == BinaryF32::kMaximum) return hn::IfThenElse(hn::Gt(a, b), a, b);
  if constexpr (kOp == BinaryF32::kMinimum) return hn::IfThenElse(hn::Lt(a, b), a, b);
  if constexpr (kOp == BinaryF32::kPrelu) {
    return hn::IfThenElse(hn::Ge(a, hn::Zero(D())), a, hn::Mul(a, b));
  }
  r = hn::IfThenElse(hn::Lt(r, lo), lo, r);
  return hn::IfThenElse(hn::Gt(r, hi), hi, r);
}

template <BinaryF32 kOp, bool kRepeatA, bool kRepeatB>
HWY_INLINE void run(const float* a, const float* b, float* out, int64_t count, float lo_bound, float hi_bound) {
  const D d;
  const V lo = hn::Set(d, lo_bound);
  const V hi = hn::Set(d, hi_bound);
  const V first_a = hn::Set(d, *a);
  const V first_b = hn::Set(d, *b);
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    for (int64_t j = i; j < i + 4 * kLanes; j += kLanes) {
      const V x = kRepeatA ? first_a : hn::LoadU(d, a + j);
      const V y = kRepeatB ? first_b : hn::LoadU(d, b + j);
      hn::StoreU(apply<kOp>(x, y, lo, hi), d, out + j);
    }
  }
  for (; i + kLanes <= count; i += kLanes) {
    const V x = kRepeatA ? first_a : hn::LoadU(d, a + i);
    const V y = kRepeatB ? first_b : hn::LoadU(d, b + i);
    hn::StoreU(apply<kOp>(x, y, lo, hi), d, out + i);
  }
  if (i == count) return;
  const size_t rest = static_cast<size_t>(count - i) * sizeof(float);
  HWY_ALIGN float buffer_a[kLanes] = {};
  HWY_ALIGN float buffer_b[kLanes] = {};
  if (!kRepeatA) std::memcpy(buffer_a, a + i, rest);
  if (!kRepeatB) std::memcpy(buffer_b, b + i, rest);
  const V x = kRepeatA ? first_a : hn::Load(d, buffer_a);
  const V y = kRepeatB ? first_b : hn::Load(d, buffer_b);
  hn::Store(apply<kOp>(x, y, lo, hi), d, buffer_a);
  std::memcpy(out + i, buffer_a, rest);
}

template <BinaryF32 kOp>
void row(const float* a, int64_t a_step, const float* b, int64_t b_step, float* out, int64_t count, float lo,
         float hi) noexcept {
  if (count <= 0) return;
  if (b_step == 0) {
    run<kOp, false, true>(a, b, out, count, lo, hi);
  } else if (a_step == 0) {
    run<kOp, true, false>(a, b, out, count, lo, hi);
  } else {
    run<kOp, false, false>(a, b, out, count, lo, hi);
  }
}

BinaryRowF32 choose(BinaryF32 op) {
  switch (op) {
    case BinaryF32::kAdd:
      return row<BinaryF32::kAdd>;
    case BinaryF32::kSub:
      return row<BinaryF32::kSub>;
    case BinaryF32::kMul:
      return row<BinaryF32::kMul>;
    case BinaryF32::kDiv:
      return row<BinaryF32::kDiv>;
    case BinaryF32::kSquaredDifference:
      return row<BinaryF32::kSquaredDifference>;
    case BinaryF32::kMaximum:
      return row<BinaryF32::kMaximum>;
    case BinaryF32::kMinimum:
      return row<BinaryF32::kMinimum>;
    case BinaryF32::kPrelu:
      return row<BinaryF32::kPrelu>;
  }
  return nullptr;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leadline::kernels {

HWY_EXPORT(choose);

BinaryRowF32 binary_row_f32(BinaryF32 op) noexcept { return HWY_DYNAMIC_DISPATCH(choose)(op); }

}  // namespace leadline::kernels
#endif
