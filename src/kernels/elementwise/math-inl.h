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

/// e^x for all floats. Highway's own returns 0 for NaN and for finite x above about 150.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_f32(D d, V x) {
  const V r = hn::Exp(d, hn::Min(x, hn::Set(d, 100.0F)));
  return hn::IfThenElse(hn::IsNaN(x), x, r);
}

/// e^x as (1 + rest) * power. Below about -87 and above 88 the power cannot be used.
template <class V>
struct SplitExp {
  V rest;
  V power;
};

/// x = n ln 2 + t with |t| <= ln 2 / 2: the power is 2^n, the rest e^t - 1 = t + t^2 p(t), where p is fitted for the
/// least relative error, 2.3e-8 with these coefficients. NaN gives a rest of NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE SplitExp<V> split_exp_f32(D d, V x) {
  const hn::RebindToUnsigned<D> bits;
  // Adding 1.5 * 2^23 leaves no bits for a fraction; 127 more and the low bits are the exponent of 2^n.
  const V shift = hn::Set(d, 12582912.0F + 127.0F);
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504F), shift);
  const V n = hn::Sub(shifted, shift);
  // ln 2 in two parts, of which the first has so few bits that its product is exact.
  V t = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), x);
  t = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), t);
  V p = hn::MulAdd(t, hn::Set(d, 0x1.6c16a0p-10F), hn::Set(d, 0x1.123d22p-7F));
  p = hn::MulAdd(p, t, hn::Set(d, 0x1.555652p-5F));
  p = hn::MulAdd(p, t, hn::Set(d, 0x1.55547ep-3F));
  p = hn::MulAdd(p, t, hn::Set(d, 0x1.fffffep-2F));
  return {hn::MulAdd(hn::Mul(t, t), p, t), hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(bits, shifted)))};
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
/// e^x for x from -87.3 to 88 in AVX-512: x = n/32 ln 2 + t, with 2^(j/32) for the low bits j of n from a table in two
/// registers, so that |t| <= 0.011 and three terms of the series are enough. NaN stays.
HWY_INLINE hn::Vec512<float> table_exp_f32(hn::Vec512<float> x) {
  alignas(64) static constexpr float kPowers[32] = {
      0x1p0F,        0x1.059b0ep0F, 0x1.0b5586p0F, 0x1.11301ep0F, 0x1.172b84p0F, 0x1.1d4874p0F, 0x1.2387a6p0F,
      0x1.29e9ep0F,  0x1.306fep0F,  0x1.371a74p0F, 0x1.3dea64p0F, 0x1.44e086p0F, 0x1.4bfdaep0F, 0x1.5342b6p0F,
      0x1.5ab07ep0F, 0x1.6247ecp0F, 0x1.6a09e6p0F, 0x1.71f75ep0F, 0x1.7a1148p0F, 0x1.82589ap0F, 0x1.8ace54p0F,
      0x1.93737cp0F, 0x1.9c4918p0F, 0x1.a5503cp0F, 0x1.ae89fap0F, 0x1.b7f77p0F,  0x1.c199bep0F, 0x1.cb720ep0F,
      0x1.d5818ep0F, 0x1.dfc974p0F, 0x1.ea4afap0F, 0x1.f50766p0F,
  };
  const hn::Full512<float> d;
  const hn::Full512<uint32_t> bits;
  // Adding 1.5 * 2^18 leaves 5 bits for the fraction.
  const auto shift = hn::Set(d, 0x1.8p18F);
  const auto shifted = hn::MulAdd(x, hn::Set(d, 1.44269504F), shift);
  const auto n = hn::Sub(shifted, shift);
  auto t = hn::NegMulAdd(n, hn::Set(d, 0.693359375F), x);
  t = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4F), t);
  const auto p = hn::MulAdd(t, hn::Set(d, 1.0F / 6), hn::Set(d, 0.5F));
  const auto rest = hn::MulAdd(hn::Mul(t, t), p, t);
  const auto index = hn::BitCast(bits, shifted);
  const hn::Vec512<float> fraction{
      _mm512_permutex2var_ps(hn::Load(d, kPowers).raw, index.raw, hn::Load(d, kPowers + 16).raw)};
  const auto whole = hn::ShiftLeft<18>(hn::And(index, hn::Set(bits, 0xFFFFFFE0U)));
  const auto power = hn::BitCast(d, hn::Add(hn::BitCast(bits, fraction), whole));
  return hn::MulAdd(rest, power, power);
}
#endif

/// e^x for x from -87.3 to 88.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V bounded_exp_f32(D d, V x) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  if constexpr (hn::MaxLanes(d) == 16) return table_exp_f32(x);
#endif
  const auto e = split_exp_f32(d, x);
  return hn::MulAdd(e.rest, e.power, e.power);
}

/// e^x for x <= 0; 0 where the result would be less than the smallest normal number.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_negative_f32(D d, V x) {
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.33F)), bounded_exp_f32(d, x));
}

/// 1 / (1 + e^-x), with x kept where e^-x and its reciprocal are normal numbers; 0 below that.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V logistic_f32(D d, V x) {
  const V lo = hn::Set(d, -87.3F);
  const V hi = hn::Set(d, 87.3F);
#if HWY_TARGET == HWY_SCALAR
  // Highway's scalar Min and Max drop NaN.
  V minus_x = hn::IfThenElse(hn::Gt(x, hi), lo, hn::Neg(x));
  minus_x = hn::IfThenElse(hn::Lt(x, lo), hi, minus_x);
#else
  const V minus_x = hn::Min(hi, hn::Max(lo, hn::Neg(x)));
#endif
  const V one = hn::Set(d, 1.0F);
  const V r = hn::Div(one, hn::Add(bounded_exp_f32(d, minus_x), one));
  return hn::IfThenZeroElse(hn::Lt(x, lo), r);
}

/// x / (1 + e^-x), from e^-|x|, in fewer multiplications than logistic_f32 has: |x| log2(e) is rounded once, so e^-|x|
/// is right to 2e-7 and |x| times 6e-8, which is less than 3e-7 of the largest |x| + 1 of a row. e^-|x| = 2^n p(t) with
/// |t| <= 1/2 and p fitted for the least relative error, 9e-8. Zero where e^-|x| would be no normal number.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V swish_f32(D d, V x) {
  const hn::RebindToUnsigned<D> bits;
  const V one = hn::Set(d, 1.0F);
  const V magnitude = hn::Abs(x);
  const V y = hn::Max(hn::Mul(magnitude, hn::Set(d, -1.44269504F)), hn::Set(d, -126.0F));
  // Adding 1.5 * 2^23 leaves no bits for a fraction, and n in the low bits.
  const V shift = hn::Set(d, 12582912.0F);
  const V shifted = hn::Add(y, shift);
  const V t = hn::Sub(y, hn::Sub(shifted, shift));
  V p = hn::MulAdd(t, hn::Set(d, 0x1.5bba14p-10F), hn::Set(d, 0x1.3cea88p-7F));
  p = hn::MulAdd(p, t, hn::Set(d, 0x1.c6b752p-5F));
  p = hn::MulAdd(p, t, hn::Set(d, 0x1.ebf9bcp-3F));
  p = hn::MulAdd(p, t, hn::Set(d, 0x1.62e42ap-1F));
  p = hn::MulAdd(p, t, one);
  const V power = hn::BitCast(d, hn::Add(hn::BitCast(bits, p), hn::ShiftLeft<23>(hn::BitCast(bits, shifted))));
  const V e = hn::IfThenZeroElse(hn::Gt(magnitude, hn::Set(d, 86.6F)), power);
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, e), x), hn::Add(one, e));
}

/// tanh |x| = -m / (2 + m) with m = e^-2|x| - 1, which does not cancel near 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh_f32(D d, V x) {
  const V minus_one = hn::Set(d, -1.0F);
  const V z = hn::Mul(hn::Abs(x), hn::Set(d, -2.0F));
  const auto e = split_exp_f32(d, z);
  const V m = hn::IfThenElse(hn::Lt(z, hn::Set(d, -40.0F)), minus_one,
                             hn::MulAdd(e.rest, e.power, hn::Add(e.power, minus_one)));
  return hn::CopySign(hn::Div(m, hn::Add(m, hn::Set(d, 2.0F))), x);
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
  const V tail = hn::Mul(hn::Mul(p, t), exp_negative_f32(d, hn::Neg(hn::Mul(z, z))));
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
