// SPDX-License-Identifier: Apache-2.0
// Logistic, tanh and 1/sqrt in integers, bit for bit as TFLite's quantized recurrent and normalizing ops have them.
// "Qm.n" is an integer with n fractional bits; a plain 16-bit result is Q0.15, in [-1, 1).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "kernels/quant/fixed_point.h"

namespace leadline::kernels {

namespace fixed_math {

/// a * b in Q0.15, rounded to nearest, ties away from zero.
inline int32_t multiply_q15(int32_t a, int32_t b) {
  if (a == -32768 && b == -32768) return 32767;
  const int32_t product = a * b;
  return (product + (product >= 0 ? (1 << 14) : 1 - (1 << 14))) / (1 << 15);
}

inline int32_t shift_left_q15(int32_t x, int bits) { return std::clamp(x * (1 << bits), -32768, 32767); }

/// A 32-bit constant of the same real value as a 16-bit one.
constexpr int32_t narrow(int32_t value) { return (value + (1 << 15)) >> 16; }

/// e^a for a in [-1/4, 0): a Taylor polynomial around -1/8.
inline int32_t exp_quarter(int32_t a) {
  constexpr int32_t kExpMinusEighth = narrow(1895147668);
  constexpr int32_t kThird = narrow(715827883);
  const int32_t x = a + (1 << 12);
  const int32_t x2 = multiply_q15(x, x);
  const int32_t x3 = multiply_q15(x2, x);
  const int32_t x4 = multiply_q15(x2, x2);
  const int32_t cubic = multiply_q15(rounding_divide_by_pot(x4, 2) + x3, kThird);
  const int32_t tail = rounding_divide_by_pot(cubic + x2, 1);
  return std::min(32767, kExpMinusEighth + multiply_q15(kExpMinusEighth, x + tail));
}

/// e^a for a <= 0 with `integer_bits` integer bits (0 to 7).
inline int32_t exp_negative(int32_t a, int integer_bits) {
  if (a == 0) return 32767;
  if (integer_bits > 5 && a < -(1 << (20 - integer_bits))) return 0;  // below -32
  const int fraction_bits = 15 - integer_bits;
  const int32_t quarter = 1 << (fraction_bits - 2);
  const int32_t rest = (a & (quarter - 1)) - quarter;
  int32_t result = exp_quarter(shift_left_q15(rest, integer_bits));
  const int32_t whole = rest - a;  // a multiple of 1/4; bit by bit it selects factors e^-(2^k)
  constexpr int32_t kFactors[] = {narrow(1672461947), narrow(1302514674), narrow(790015084), narrow(290630308),
                                  narrow(39332535),   narrow(720401),     narrow(242)};
  for (int k = -2; k < std::min(integer_bits, 5); ++k) {
    if (whole & (1 << (fraction_bits + k))) result = multiply_q15(result, kFactors[k + 2]);
  }
  return result;
}

/// 2 / (1 + a) in Q2.13 for a in [0, 1): three Newton steps from 48/17 - 32/17 * x.
inline int32_t two_over_one_plus(int32_t a) {
  constexpr int32_t k48Over17 = narrow(1515870810);
  constexpr int32_t kMinus32Over17 = narrow(-1010580540);
  constexpr int32_t kOne = 1 << 13;
  const int32_t half_denominator = (a + 32767 + 1) / 2;
  int32_t x = k48Over17 + multiply_q15(half_denominator, kMinus32Over17);
  for (int i = 0; i < 3; ++i) {
    const int32_t error = kOne - multiply_q15(half_denominator, x);
    x += shift_left_q15(multiply_q15(x, error), 2);
  }
  return x;
}

}  // namespace fixed_math

/// 1 / (1 + e^-x) in Q0.15; x is Q3.12.
inline int16_t logistic_q15(int16_t x) {
  if (x == 0) return 1 << 14;
  const int32_t e = fixed_math::exp_negative(-std::abs(int32_t{x}), 3);
  const int32_t positive = fixed_math::shift_left_q15(fixed_math::two_over_one_plus(e), 1);
  return static_cast<int16_t>(x > 0 ? positive : 32767 - positive);
}

/// tanh(x) in Q0.15; x has `integer_bits` integer bits (0 to 6).
inline int16_t tanh_q15(int16_t x, int integer_bits) {
  if (x == 0) return 0;
  const int32_t e = fixed_math::exp_negative(-std::abs(int32_t{x}), integer_bits + 1);  // e^(-2|x|)
  const int32_t magnitude = fixed_math::shift_left_q15(fixed_math::two_over_one_plus(e) - (1 << 13), 2);
  return static_cast<int16_t>(x > 0 ? magnitude : -magnitude);
}

/// 1 / sqrt(value) as a factor for multiply(). Values below 2 count as 1.
inline Multiplier inverse_sqrt_multiplier(int32_t value) {
  if (value <= 1) return {std::numeric_limits<int32_t>::max(), 0};
  int right_shift = 11;
  while (value >= (1 << 29)) {
    value /= 4;
    ++right_shift;
  }
  const int pairs = (std::countl_zero(static_cast<uint32_t>(value)) - 1) / 2 - 1;
  right_shift -= pairs;
  value <<= 2 * pairs;
  // Newton steps for 1/sqrt in Q3.28, from 1.
  auto shift_left = [](int32_t x, int bits) { return saturate_i32(int64_t{x} * (int64_t{1} << bits)); };
  constexpr int32_t kHalfThree = (1 << 28) + (1 << 27);
  constexpr int32_t kHalfSqrtTwo = 1518500250;
  const int32_t half_input = rounding_divide_by_pot(value >> 1, 1);
  int32_t x = 1 << 28;
  for (int i = 0; i < 5; ++i) {
    const int32_t cube = shift_left(rounding_doubling_high_mul(rounding_doubling_high_mul(x, x), x), 6);
    x = shift_left(rounding_doubling_high_mul(kHalfThree, x) - rounding_doubling_high_mul(half_input, cube), 3);
  }
  int32_t result = rounding_doubling_high_mul(x, kHalfSqrtTwo);
  if (right_shift < 0) {
    result = shift_left(result, -right_shift);
    right_shift = 0;
  }
  return {result, -right_shift};
}

}  // namespace leadline::kernels
