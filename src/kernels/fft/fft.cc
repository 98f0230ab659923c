// SPDX-License-Identifier: Apache-2.0
#include "kernels/fft/fft.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace leadline::kernels {
namespace {

/// exp(-2 pi i k / n)
Complex root(uint64_t k, uint64_t n) {
  const double angle = -2.0 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

/// Without the special cases for infinities that operator* has.
Complex product(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

void fill_roots(int64_t n, IndexRange range, Complex* table) noexcept {
  for (int64_t k = range.begin; k < range.end; ++k) table[k] = root(static_cast<uint64_t>(k), static_cast<uint64_t>(n));
}

void fill_chirp(int64_t n, IndexRange range, Complex* table) noexcept {
  const auto twice = static_cast<uint64_t>(2 * n);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const auto k = static_cast<uint64_t>(i);
    table[i] = root(k * k % twice, twice);  // k * k < 2^62
  }
}

void fill_chirp_filter(const Complex* chirp, int64_t padded, IndexRange range, Complex* filter) noexcept {
  for (int64_t k = range.begin; k < range.end; ++k) {
    filter[k] = std::conj(chirp[k]);
    if (k > 0) filter[padded - k] = filter[k];
  }
}

void reverse_bits(int64_t n, IndexRange range, Complex* data) noexcept {
  int64_t reversed = 0;
  for (int64_t bit = 1, mirror = n >> 1; bit < n; bit <<= 1, mirror >>= 1) {
    if ((range.begin & bit) != 0) reversed |= mirror;
  }
  for (int64_t i = range.begin; i < range.end; ++i) {
    if (i < reversed) std::swap(data[i], data[reversed]);
    int64_t bit = n >> 1;
    for (; (reversed & bit) != 0; bit >>= 1) reversed ^= bit;
    reversed ^= bit;
  }
}

void join_halves(int64_t half, const Complex* roots, IndexRange range, Complex* data) noexcept {
  Complex* low = data + range.begin / half * 2 * half;
  int64_t k = range.begin % half;
  for (int64_t left = range.size(); left > 0; low += 2 * half, k = 0) {
    Complex* high = low + half;
    const int64_t end = std::min(half, k + left);
    left -= end - k;
    for (; k < end; ++k) {
      const Complex turned = product(high[k], roots[k]);
      high[k] = low[k] - turned;
      low[k] += turned;
    }
  }
}

void multiply(const Complex* a, const Complex* b, IndexRange range, Complex* out) noexcept {
  for (int64_t k = range.begin; k < range.end; ++k) out[k] = product(a[k], b[k]);
}

void multiply_conjugate(const Complex* factors, IndexRange range, Complex* data) noexcept {
  for (int64_t k = range.begin; k < range.end; ++k) data[k] = std::conj(product(data[k], factors[k]));
}

void scale_conjugate(const Complex* data, const Complex* factors, double scale, IndexRange range,
                     Complex* out) noexcept {
  for (int64_t k = range.begin; k < range.end; ++k) out[k] = product(std::conj(data[k]), factors[k]) * scale;
}

void pair_samples(const double* samples, IndexRange range, Complex* out) noexcept {
  for (int64_t k = range.begin; k < range.end; ++k) out[k] = Complex(samples[2 * k], samples[2 * k + 1]);
}

void split_pairs(int64_t half, const Complex* roots, IndexRange range, Complex* bins) noexcept {
  for (int64_t k = range.begin; k < range.end; ++k) {
    const Complex a = bins[k];
    const Complex b = std::conj(bins[half - k]);
    const Complex evens = (a + b) * 0.5;
    const Complex difference = (a - b) * 0.5;
    const Complex odds = product(Complex(difference.imag(), -difference.real()), roots[k]);
    bins[half - k] = std::conj(evens - odds);
    bins[k] = evens + odds;
  }
}

}  // namespace leadline::kernels
