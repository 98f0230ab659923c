// SPDX-License-Identifier: Apache-2.0
#include "kernels/fft/fft.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "core/cancel.h"

namespace leadline::kernels {
namespace {

/// exp(-2 pi i k / n)
Complex root(uint64_t k, uint64_t n) {
  const double angle = -2.0 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

/// Without the special cases for infinities that operator* has.
Complex multiply(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

bool power_of_two(int64_t n) { return std::has_single_bit(static_cast<uint64_t>(n)); }

/// Numbers between two questions whether to go on, in loops that walk through memory once.
constexpr int64_t kPiece = int64_t{1} << 16;
/// What a root takes, in simple operations.
constexpr int64_t kRootWork = 64;

/// The factors of each round one after the other: 1, 2, 4, ... n / 2 of them.
void fill_rounds(int64_t n, Complex* table) {
  PacedCheck check;
  for (int64_t half = 1; half < n; half *= 2) {
    for (int64_t k = 0; k < half; ++k) {
      check.count(kRootWork);
      *table++ = root(static_cast<uint64_t>(k), static_cast<uint64_t>(2 * half));
    }
  }
}

void forward_power_of_two(int64_t n, const Complex* table, Complex* data) {
  PacedCheck check;
  for (int64_t i = 1, reversed = 0; i < n; ++i) {
    check.count(1);
    int64_t bit = n >> 1;
    for (; (reversed & bit) != 0; bit >>= 1) reversed ^= bit;
    reversed ^= bit;
    if (i < reversed) std::swap(data[i], data[reversed]);
  }
  for (int64_t half = 1; half < n; table += half, half *= 2) {
    for (int64_t begin = 0; begin < n; begin += 2 * half) {
      Complex* low = data + begin;
      Complex* high = low + half;
      for (int64_t k = 0; k < half;) {
        const int64_t end = std::min(half, k + kPiece);
        check.count(4 * (end - k));
        for (; k < end; ++k) {
          const Complex turned = multiply(high[k], table[k]);
          high[k] = low[k] - turned;
          low[k] += turned;
        }
      }
    }
  }
}

}  // namespace

Fft::Fft(int64_t length)
    : length_(length),
      padded_(power_of_two(length) ? 0 : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * length - 1)))) {}

int64_t Fft::table_size() const { return padded_ == 0 ? length_ - 1 : length_ + padded_ + padded_ - 1; }

void Fft::fill_table(Complex* table) const {
  if (padded_ == 0) return fill_rounds(length_, table);
  Complex* chirp = table;
  Complex* filter = chirp + length_;
  Complex* rounds = filter + padded_;
  fill_rounds(padded_, rounds);
  const auto n = static_cast<uint64_t>(length_);
  in_pieces(padded_, kPiece, [&](int64_t begin, int64_t end) { std::fill(filter + begin, filter + end, Complex()); });
  PacedCheck check;
  for (uint64_t k = 0; k < n; ++k) {
    check.count(kRootWork);
    chirp[k] = root(k * k % (2 * n), 2 * n);  // k * k < 2^62
    filter[k] = std::conj(chirp[k]);
    if (k > 0) filter[static_cast<uint64_t>(padded_) - k] = filter[k];
  }
  forward_power_of_two(padded_, rounds, filter);
}

void Fft::forward(const Complex* table, Complex* data, Complex* workspace) const {
  if (padded_ == 0) return forward_power_of_two(length_, table, data);
  const Complex* chirp = table;
  const Complex* filter = chirp + length_;
  const Complex* rounds = filter + padded_;
  in_pieces(length_, kPiece, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) workspace[k] = multiply(data[k], chirp[k]);
  });
  in_pieces(padded_ - length_, kPiece, [&](int64_t begin, int64_t end) {
    std::fill(workspace + length_ + begin, workspace + length_ + end, Complex());
  });
  forward_power_of_two(padded_, rounds, workspace);
  // Back with conjugates on both sides, which turns the forward transform into the inverse one.
  in_pieces(padded_, kPiece, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) workspace[k] = std::conj(multiply(workspace[k], filter[k]));
  });
  forward_power_of_two(padded_, rounds, workspace);
  const double scale = 1.0 / static_cast<double>(padded_);
  in_pieces(length_, kPiece, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) data[k] = multiply(std::conj(workspace[k]), chirp[k]) * scale;
  });
}

RealFft::RealFft(int64_t length) : length_(length), inner_(length % 2 == 0 ? length / 2 : length) {}

int64_t RealFft::table_size() const { return inner_.table_size() + (even() ? length_ / 4 + 1 : 0); }

int64_t RealFft::workspace_size() const { return inner_.workspace_size() + (even() ? 0 : length_); }

void RealFft::fill_table(Complex* table) const {
  inner_.fill_table(table);
  if (!even()) return;
  table += inner_.table_size();
  PacedCheck check;
  for (int64_t k = 0; k <= length_ / 4; ++k) {
    check.count(kRootWork);
    table[k] = root(static_cast<uint64_t>(k), static_cast<uint64_t>(length_));
  }
}

void RealFft::forward(const Complex* table, const double* samples, Complex* bins, Complex* workspace) const {
  if (!even()) {
    Complex* data = workspace;
    in_pieces(length_, kPiece, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) data[k] = Complex(samples[k], 0.0);
    });
    inner_.forward(table, data, workspace + length_);
    std::copy_n(data, this->bins(), bins);
    return;
  }
  const int64_t half = length_ / 2;
  in_pieces(half, kPiece, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) bins[k] = Complex(samples[2 * k], samples[2 * k + 1]);
  });
  inner_.forward(table, bins, workspace);
  // The transforms of the even and of the odd samples, taken apart by their symmetry and put together.
  const Complex* turns = table + inner_.table_size();
  const Complex first = bins[0];
  bins[0] = Complex(first.real() + first.imag(), 0.0);
  bins[half] = Complex(first.real() - first.imag(), 0.0);
  PacedCheck check;
  for (int64_t k = 1; 2 * k <= half; ++k) {
    check.count(8);
    const Complex a = bins[k];
    const Complex b = std::conj(bins[half - k]);
    const Complex evens = (a + b) * 0.5;
    const Complex difference = (a - b) * 0.5;
    const Complex odds = multiply(Complex(difference.imag(), -difference.real()), turns[k]);
    bins[half - k] = std::conj(evens - odds);
    bins[k] = evens + odds;
  }
}

}  // namespace leadline::kernels
