// SPDX-License-Identifier: Apache-2.0
// Functions that the C++ library of this compiler lacks, in double precision. Relative errors are below 1e-12 unless
// the function says otherwise.
#pragma once

#include <math.h>  // NOLINT(modernize-deprecated-headers): lgamma_r

#include <cmath>
#include <limits>
#include <numbers>

namespace leadline::ops {

/// log |gamma(x)|. std::lgamma writes a variable that all threads share.
inline double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

/// The derivative of log gamma: the recurrence up to 6 and more, then the asymptotic series.
inline double digamma(double x) {
  if (x <= 0 && x == std::floor(x)) return std::numeric_limits<double>::quiet_NaN();
  double result = 0;
  if (x < 0) {
    result = -std::numbers::pi / std::tan(std::numbers::pi * x);
    x = 1 - x;
  }
  while (x < 10) result -= 1 / x++;
  const double square = 1 / (x * x);
  const double series =
      square * (1.0 / 12 - square * (1.0 / 120 - square * (1.0 / 252 - square * (1.0 / 240 - square * (1.0 / 132)))));
  return result + std::log(x) - 0.5 / x - series;
}

/// The y with erfc(y) = x, for 0 < x < 2: Newton's method on the logarithm where x is small, on erf elsewhere.
inline double inverse_erfc(double x) {
  if (!(x >= 0 && x <= 2)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return std::numeric_limits<double>::infinity();
  if (x == 2) return -std::numeric_limits<double>::infinity();
  if (x > 1) return -inverse_erfc(2 - x);
  constexpr double kSlope = 2 * std::numbers::inv_sqrtpi;
  // Tails behave like exp(-y * y) / (y * sqrt(pi)).
  const double log_x = std::log(x);
  double y = x > 0.5 ? (1 - x) / kSlope : std::sqrt(std::max(-log_x - 0.5 * std::log(-log_x * std::numbers::pi), 0.1));
  for (int i = 0; i < 60; ++i) {
    const double value = std::erfc(y);
    const double step = value * (std::log(value) - log_x) / (kSlope * std::exp(-y * y));
    y += step;
    if (std::abs(step) <= 1e-15 * std::abs(y)) break;
  }
  return y;
}

/// The y with erf(y) = x.
inline double inverse_erf(double x) {
  if (!(x >= -1 && x <= 1)) return std::numeric_limits<double>::quiet_NaN();
  if (std::abs(x) > 0.5) return x > 0 ? inverse_erfc(1 - x) : -inverse_erfc(1 + x);
  double y = x / (2 * std::numbers::inv_sqrtpi);
  for (int i = 0; i < 60; ++i) {
    const double step = (x - std::erf(y)) / (2 * std::numbers::inv_sqrtpi * std::exp(-y * y));
    y += step;
    if (std::abs(step) <= 1e-16 * std::abs(y)) break;
  }
  return y;
}

/// Modified Bessel functions of the first kind of order 0 and 1 times exp(-|x|): power series for small arguments, the
/// asymptotic series for large ones.
inline double scaled_bessel_i(int order, double x) {
  const double size = std::abs(x);
  const double sign = order == 1 && x < 0 ? -1 : 1;
  if (size < 30) {
    const double quarter = size * size / 4;
    double term = order == 0 ? 1 : size / 2;
    double sum = term;
    for (int k = 1; k < 200 && term > 1e-17 * sum; ++k) {
      term *= quarter / (static_cast<double>(k) * (k + order));
      sum += term;
    }
    return sign * sum * std::exp(-size);
  }
  const double mu = 4.0 * order * order;
  double term = 1;
  double sum = 1;
  for (int k = 1; k < 20; ++k) {
    const double odd = 2.0 * k - 1;
    term *= -(mu - odd * odd) / (8 * size * k);
    sum += term;
  }
  return sign * sum / std::sqrt(2 * std::numbers::pi * size);
}
inline double bessel_i0e(double x) { return scaled_bessel_i(0, x); }
inline double bessel_i1e(double x) { return scaled_bessel_i(1, x); }

/// The regularised lower incomplete gamma function P(a, x): its series, or the continued fraction of Q = 1 - P.
inline double lower_gamma(double a, double x) {
  if (!(a > 0) || !(x >= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return 0;
  if (std::isinf(x)) return 1;
  const double scale = std::exp(a * std::log(x) - x - log_gamma(a));
  if (x < a + 1) {
    double term = 1 / a;
    double sum = term;
    for (int k = 1; k < 10000 && term > 1e-17 * sum; ++k) {
      term *= x / (a + k);
      sum += term;
    }
    return sum * scale;
  }
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a;
  double c = 1 / kTiny;
  double d = 1 / b;
  double fraction = d;
  for (int k = 1; k < 10000; ++k) {
    const double factor = -k * (k - a);
    b += 2;
    d = factor * d + b;
    d = 1 / (std::abs(d) < kTiny ? kTiny : d);
    c = b + factor / c;
    c = std::abs(c) < kTiny ? kTiny : c;
    const double change = c * d;
    fraction *= change;
    if (std::abs(change - 1) < 1e-16) break;
  }
  return 1 - scale * fraction;
}

/// The regularised incomplete beta function I_x(a, b), by its continued fraction.
inline double incomplete_beta(double a, double b, double x) {
  if (!(a > 0 && b > 0 && x >= 0 && x <= 1)) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0 || x == 1) return x;
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
  const double scale =
      std::exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) + b * std::log1p(-x)) / a;
  constexpr double kTiny = 1e-300;
  double c = 1;
  double d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::abs(d) < kTiny ? kTiny : d);
  double fraction = d;
  const auto advance = [&](double factor) {
    d = 1 + factor * d;
    d = 1 / (std::abs(d) < kTiny ? kTiny : d);
    c = 1 + factor / c;
    c = std::abs(c) < kTiny ? kTiny : c;
    fraction *= c * d;
    return c * d;
  };
  for (int k = 1; k < 10000; ++k) {
    advance(k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k)));
    const double change = advance(-(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1)));
    if (std::abs(change - 1) < 1e-16) break;
  }
  return scale * fraction;
}

}  // namespace leadline::ops
