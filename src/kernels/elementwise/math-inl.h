// SPDX-License-Identifier: Apache-2.0
// Vector functions that several Highway files share; included once per target.
#if defined(LEADLINE_KERNELS_ELEMENTWISE_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEADLINE_KERNELS_ELEMENTWISE_MATH_INL_H_
#undef LEADLINE_KERNELS_ELEMENTWISE_MATH_INL_H_
#else
#define LEADLINE_KERNELS_ELEMENTWISE_MATH_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// e^x for all floats. Highway's own gives 0 for NaN and for finite x above about 150.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_f32(D d, V x) {
  const V r = hn::Exp(d, hn::Min(x, hn::Set(d, 100.0F)));
  return hn::IfThenElse(hn::IsNaN(x), x, r);
}

/// 1 / (1 + e^-x), from e^-|x| so that nothing overflows.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V logistic_f32(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  const V e = hn::Exp(d, hn::Neg(hn::Abs(x)));
  const V r = hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
  return hn::IfThenElse(hn::IsNaN(x), x, r);
}

/// tanh x = (1 - e) / (1 + e) with e = e^-2|x|; near 0, where that cancels, by its Taylor series.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh_f32(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  const V magnitude = hn::Abs(x);
  const V e = hn::Exp(d, hn::Mul(magnitude, hn::Set(d, -2.0F)));
  const V far = hn::CopySign(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
  // Terms -1/3, 2/15, -17/315, 62/2835: below 0.2 the next one is under 2^-24 of the sum.
  const V square = hn::Mul(x, x);
  V series = hn::MulAdd(square, hn::Set(d, 0.021869489F), hn::Set(d, -0.053968254F));
  series = hn::MulAdd(series, square, hn::Set(d, 0.13333333F));
  series = hn::MulAdd(series, square, hn::Set(d, -0.33333333F));
  const V near = hn::MulAdd(hn::Mul(series, square), x, x);
  const V r = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0.2F)), near, far);
  return hn::IfThenElse(hn::IsNaN(x), x, r);
}

/// e^x - 1 for x <= 0 without cancellation near 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V expm1_negative_f32(D d, V x) {
  return hn::Expm1(d, x);
}

/// x/2 * erfc(-x / sqrt 2), with erfc(z) = t * P(t) * e^(-z^2), t = 1 / (1 + 0.3275911 z) for z >= 0
/// (Abramowitz and Stegun 7.1.26, absolute error 1.5e-7). No cancellation for negative x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_f32(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  const V z = hn::Mul(hn::Abs(x), hn::Set(d, 0.70710678F));
  const V t = hn::Div(one, hn::MulAdd(z, hn::Set(d, 0.3275911F), one));
  V p = hn::MulAdd(t, hn::Set(d, 1.061405429F), hn::Set(d, -1.453152027F));
  p = hn::MulAdd(p, t, hn::Set(d, 1.421413741F));
  p = hn::MulAdd(p, t, hn::Set(d, -0.284496736F));
  p = hn::MulAdd(p, t, hn::Set(d, 0.254829592F));
  const V tail = hn::Mul(hn::Mul(p, t), hn::Exp(d, hn::Neg(hn::Mul(z, z))));
  const V erfc = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(hn::Set(d, 2.0F), tail));
  const V r = hn::Mul(hn::Mul(x, hn::Set(d, 0.5F)), erfc);
  // Minus infinity times 0 would be NaN.
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, -20.0F)), hn::Zero(d), r);
}

/// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_tanh_f32(D d, V x) {
  const V cubic = hn::Mul(hn::Mul(hn::Mul(hn::Set(d, 0.044715F), x), x), x);
  const V inner = hn::Mul(hn::Set(d, 0.79788456F), hn::Add(x, cubic));
  // 0.5 (1 + tanh y) is the logistic function of 2y, which does not cancel for negative y.
  const V r = hn::Mul(x, logistic_f32(d, hn::Add(inner, inner)));
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, -20.0F)), hn::Zero(d), r);
}

}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
