// SPDX-License-Identifier: Apache-2.0
// Fixed-point scaling with TFLite's rounding (its default, double rounding), bit for bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace leadline::kernels {

/// A positive real factor as value * 2^(shift - 31), value in [2^30, 2^31) or 0.
struct Multiplier {
  int32_t value = 0;
  int shift = 0;
};

/// The closest Multiplier to `factor` >= 0. Too small factors become 0, too large ones the largest.
inline Multiplier quantize_multiplier(double factor) {
  if (!(factor > 0.0)) return {};
  if (std::isinf(factor)) return {std::numeric_limits<int32_t>::max(), 30};
  int shift = 0;
  const double mantissa = std::frexp(factor, &shift);
  int64_t fixed = std::llround(mantissa * static_cast<double>(int64_t{1} << 31));
  if (fixed == (int64_t{1} << 31)) {
    fixed /= 2;
    ++shift;
  }
  if (shift < -31) return {};
  if (shift > 30) return {std::numeric_limits<int32_t>::max(), 30};
  return {static_cast<int32_t>(fixed), shift};
}

/// a * b / c for scales: in floats, as TFLite and XNNPACK compute it, unless a float cannot hold a * b.
inline double scale_ratio(float a, float b, float c) {
  const float product = a * b;
  if (!std::isnormal(product)) return double{a} * b / c;
  const float ratio = product / c;
  return std::isnormal(ratio) ? ratio : double{product} / c;
}

/// Whether kernels that scale by a float can use that ratio.
inline bool finite_ratio(float a, float b, float c) {
  return scale_ratio(a, b, c) <= std::numeric_limits<float>::max();
}

inline int32_t saturate_i32(int64_t value) {
  return static_cast<int32_t>(
      std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
}

/// High 32 bits of 2*a*b, rounded to nearest, ties away from zero; saturates for a == b == INT32_MIN.
inline int32_t rounding_doubling_high_mul(int32_t a, int32_t b) {
  if (a == b && a == std::numeric_limits<int32_t>::min()) return std::numeric_limits<int32_t>::max();
  const int64_t product = int64_t{a} * b;
  const int64_t nudge = product >= 0 ? (int64_t{1} << 30) : (1 - (int64_t{1} << 30));
  return static_cast<int32_t>((product + nudge) / (int64_t{1} << 31));
}

/// x / 2^exponent, rounded to nearest, ties away from zero. 0 <= exponent <= 31.
inline int32_t rounding_divide_by_pot(int32_t x, int exponent) {
  const auto mask = static_cast<int32_t>((int64_t{1} << exponent) - 1);
  const int32_t remainder = x & mask;
  const int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
  return (x >> exponent) + (remainder > threshold ? 1 : 0);
}

/// x * m as TFLite's MultiplyByQuantizedMultiplier(int32) computes it; saturates instead of overflowing.
inline int32_t multiply(int32_t x, Multiplier m) {
  const int left = std::max(m.shift, 0);
  const int right = std::max(-m.shift, 0);
  const int32_t shifted = saturate_i32(int64_t{x} * (int64_t{1} << left));
  return rounding_divide_by_pot(rounding_doubling_high_mul(shifted, m.value), right);
}

/// x * m for the 48-bit accumulators of int16 activations, as TFLite's 64-bit variant computes it:
/// the factor is reduced to 16 bits, then one rounding.
inline int32_t multiply_wide(int64_t x, Multiplier m) {
  const int32_t reduced = m.value < 0x7FFF0000 ? (m.value + (1 << 15)) >> 16 : 0x7FFF;
  const int total_shift = 15 - m.shift;
  const __int128 product = static_cast<__int128>(x) * reduced;
  if (total_shift <= 0) {
    return saturate_i32(static_cast<int64_t>(std::clamp<__int128>(product << -total_shift, INT64_MIN, INT64_MAX)));
  }
  const __int128 rounded = (product + (static_cast<__int128>(1) << (total_shift - 1))) >> total_shift;
  return saturate_i32(static_cast<int64_t>(std::clamp<__int128>(rounded, INT64_MIN, INT64_MAX)));
}

}  // namespace leadline::kernels
