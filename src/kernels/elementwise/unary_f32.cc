// SPDX-License-Identifier: Apache-2.0
// float32 unary rows with Highway. An element's result does not depend on its place in the row: the last, partial
// vector is copied through a buffer.
#include "kernels/elementwise/unary_f32.h"

#include <cstring>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/unary_f32.cc"
#include "kernels/all_targets.h"
#include "kernels/elementwise/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int64_t kLanes = HWY_LANES(float);

template <UnaryF32 kOp>
HWY_INLINE V apply(V x, V p0, V p1) {
  const D d;
  const V zero = hn::Zero(d);
  const V one = hn::Set(d, 1.0F);
  if constexpr (kOp == UnaryF32::kClamp) {
    const V r = hn::IfThenElse(hn::Lt(x, p0), p0, x);
    return hn::IfThenElse(hn::Gt(r, p1), p1, r);
  }
  if constexpr (kOp == UnaryF32::kLeakyRelu) return hn::IfThenElse(hn::Gt(x, zero), x, hn::Mul(x, p0));
  if constexpr (kOp == UnaryF32::kElu) {
    return hn::IfThenElse(hn::Lt(x, zero), expm1_negative_f32(d, hn::Min(x, zero)), x);
  }
  if constexpr (kOp == UnaryF32::kGelu) return gelu_f32(d, x);
  if constexpr (kOp == UnaryF32::kGeluTanh) return gelu_tanh_f32(d, x);
  if constexpr (kOp == UnaryF32::kHardSwish) {
    const V gate = hn::Min(hn::Set(d, 6.0F), hn::Max(zero, hn::Add(x, hn::Set(d, 3.0F))));
    return hn::Mul(hn::Mul(x, gate), hn::Set(d, 1.0F / 6.0F));
  }
  if constexpr (kOp == UnaryF32::kLogistic) return logistic_f32(d, x);
  if constexpr (kOp == UnaryF32::kSwish) return swish_f32(d, x);
  if constexpr (kOp == UnaryF32::kTanh) return tanh_f32(d, x);
  if constexpr (kOp == UnaryF32::kExp) return exp_f32(d, x);
  if constexpr (kOp == UnaryF32::kAbs) return hn::Abs(x);
  if constexpr (kOp == UnaryF32::kNeg) return hn::Neg(x);
  if constexpr (kOp == UnaryF32::kSqrt) return hn::Sqrt(x);
  if constexpr (kOp == UnaryF32::kRsqrt) return hn::Div(one, hn::Sqrt(x));
  if constexpr (kOp == UnaryF32::kSquare) return hn::Mul(x, x);
  if constexpr (kOp == UnaryF32::kFloor) return hn::Floor(x);
  if constexpr (kOp == UnaryF32::kCeil) return hn::Ceil(x);
  if constexpr (kOp == UnaryF32::kRound) return hn::Round(x);
  if constexpr (kOp == UnaryF32::kSign) {
    const V sign = hn::IfThenElse(hn::Gt(x, zero), one, hn::IfThenElse(hn::Lt(x, zero), hn::Neg(one), zero));
    return hn::IfThenElse(hn::IsNaN(x), x, sign);
  }
}

template <UnaryF32 kOp>
void row(const float* in, float* out, int64_t count, float p0, float p1) noexcept {
  const D d;
  const V v0 = hn::Set(d, p0);
  const V v1 = hn::Set(d, p1);
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    const V a = hn::LoadU(d, in + i);
    const V b = hn::LoadU(d, in + i + kLanes);
    hn::StoreU(apply<kOp>(a, v0, v1), d, out + i);
    hn::StoreU(apply<kOp>(b, v0, v1), d, out + i + kLanes);
  }
  for (; i < count; i += kLanes) {
    const int64_t left = count - i;
    if (left >= kLanes) {
      hn::StoreU(apply<kOp>(hn::LoadU(d, in + i), v0, v1), d, out + i);
      continue;
    }
    HWY_ALIGN float buffer[kLanes] = {};
    std::memcpy(buffer, in + i, static_cast<size_t>(left) * sizeof(float));
    hn::Store(apply<kOp>(hn::Load(d, buffer), v0, v1), d, buffer);
    std::memcpy(out + i, buffer, static_cast<size_t>(left) * sizeof(float));
  }
}

UnaryRowF32 choose(UnaryF32 op) {
  switch (op) {
    case UnaryF32::kClamp:
      return row<UnaryF32::kClamp>;
    case UnaryF32::kLeakyRelu:
      return row<UnaryF32::kLeakyRelu>;
    case UnaryF32::kElu:
      return row<UnaryF32::kElu>;
    case UnaryF32::kGelu:
      return row<UnaryF32::kGelu>;
    case UnaryF32::kGeluTanh:
      return row<UnaryF32::kGeluTanh>;
    case UnaryF32::kHardSwish:
      return row<UnaryF32::kHardSwish>;
    case UnaryF32::kLogistic:
      return row<UnaryF32::kLogistic>;
    case UnaryF32::kSwish:
      return row<UnaryF32::kSwish>;
    case UnaryF32::kTanh:
      return row<UnaryF32::kTanh>;
    case UnaryF32::kExp:
      return row<UnaryF32::kExp>;
    case UnaryF32::kAbs:
      return row<UnaryF32::kAbs>;
    case UnaryF32::kNeg:
      return row<UnaryF32::kNeg>;
    case UnaryF32::kSqrt:
      return row<UnaryF32::kSqrt>;
    case UnaryF32::kRsqrt:
      return row<UnaryF32::kRsqrt>;
    case UnaryF32::kSquare:
      return row<UnaryF32::kSquare>;
    case UnaryF32::kFloor:
      return row<UnaryF32::kFloor>;
    case UnaryF32::kCeil:
      return row<UnaryF32::kCeil>;
    case UnaryF32::kRound:
      return row<UnaryF32::kRound>;
    case UnaryF32::kSign:
      return row<UnaryF32::kSign>;
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

UnaryRowF32 unary_row_f32(UnaryF32 op) noexcept { return HWY_DYNAMIC_DISPATCH(choose)(op); }

}  // namespace leadline::kernels
#endif
