// SPDX-License-Identifier: Apache-2.0
#include "ops/loops/fft.h"

#include <algorithm>
#include <bit>

#include "core/work.h"

namespace leadline::ops {
namespace {

/// What a sine and a cosine take, what the steps of a transform do for each number, and what moving one does.
constexpr double kRootCost = 64;
constexpr double kStepCost = 4;
constexpr double kMoveCost = 2;

bool power_of_two(int64_t n) { return std::has_single_bit(static_cast<uint64_t>(n)); }

/// The roots of each round one after the other: 1, 2, 4, ... n / 2 of them.
void fill_rounds(int64_t n, Complex* table) {
  for (int64_t half = 1; half < n; table += half, half *= 2) {
    for_pieces(half, kRootCost,
               [&](int64_t begin, int64_t end) { kernels::fill_roots(2 * half, {begin, end}, table); });
  }
}

void forward_power_of_two(int64_t n, const Complex* table, Complex* data) {
  for_pieces(n, kMoveCost, [&](int64_t begin, int64_t end) { kernels::reverse_bits(n, {begin, end}, data); });
  for (int64_t half = 1; half < n; table += half, half *= 2) {
    for_pieces(n / 2, kStepCost,
               [&](int64_t begin, int64_t end) { kernels::join_halves(half, table, {begin, end}, data); });
  }
}

void clear(Complex* data, int64_t count) {
  for_pieces(count, kMoveCost, [&](int64_t begin, int64_t end) { std::fill(data + begin, data + end, Complex()); });
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
  clear(filter, padded_);
  for_pieces(length_, kRootCost, [&](int64_t begin, int64_t end) {
    kernels::fill_chirp(length_, {begin, end}, chirp);
    kernels::fill_chirp_filter(chirp, padded_, {begin, end}, filter);
  });
  forward_power_of_two(padded_, rounds, filter);
}

void Fft::forward(const Complex* table, Complex* data, Complex* workspace) const {
  if (padded_ == 0) return forward_power_of_two(length_, table, data);
  const Complex* chirp = table;
  const Complex* filter = chirp + length_;
  const Complex* rounds = filter + padded_;
  for_pieces(length_, kStepCost,
             [&](int64_t begin, int64_t end) { kernels::multiply(data, chirp, {begin, end}, workspace); });
  clear(workspace + length_, padded_ - length_);
  forward_power_of_two(padded_, rounds, workspace);
  // Back with conjugates on both sides, which turns the forward transform into the inverse one.
  for_pieces(padded_, kStepCost,
             [&](int64_t begin, int64_t end) { kernels::multiply_conjugate(filter, {begin, end}, workspace); });
  forward_power_of_two(padded_, rounds, workspace);
  const double scale = 1.0 / static_cast<double>(padded_);
  for_pieces(length_, kStepCost, [&](int64_t begin, int64_t end) {
    kernels::scale_conjugate(workspace, chirp, scale, {begin, end}, data);
  });
}

RealFft::RealFft(int64_t length) : length_(length), inner_(length % 2 == 0 ? length / 2 : length) {}

int64_t RealFft::table_size() const { return inner_.table_size() + (even() ? length_ / 4 + 1 : 0); }

int64_t RealFft::workspace_size() const { return inner_.workspace_size() + (even() ? 0 : length_); }

void RealFft::fill_table(Complex* table) const {
  inner_.fill_table(table);
  if (!even()) return;
  table += inner_.table_size();
  for_pieces(length_ / 4 + 1, kRootCost,
             [&](int64_t begin, int64_t end) { kernels::fill_roots(length_, {begin, end}, table); });
}

void RealFft::forward(const Complex* table, const double* samples, Complex* bins, Complex* workspace) const {
  if (!even()) {
    Complex* data = workspace;
    for_pieces(length_, kMoveCost,
               [&](int64_t begin, int64_t end) { std::copy(samples + begin, samples + end, data + begin); });
    inner_.forward(table, data, workspace + length_);
    copy_bytes(reinterpret_cast<std::byte*>(bins), reinterpret_cast<const std::byte*>(data),
               this->bins() * static_cast<int64_t>(sizeof(Complex)));
    return;
  }
  const int64_t half = length_ / 2;
  for_pieces(half, kMoveCost, [&](int64_t begin, int64_t end) { kernels::pair_samples(samples, {begin, end}, bins); });
  inner_.forward(table, bins, workspace);
  const Complex* turns = table + inner_.table_size();
  const Complex first = bins[0];
  bins[0] = Complex(first.real() + first.imag(), 0.0);
  bins[half] = Complex(first.real() - first.imag(), 0.0);
  for_pieces(half / 2, 2 * kStepCost,
             [&](int64_t begin, int64_t end) { kernels::split_pairs(half, turns, {begin + 1, end + 1}, bins); });
}

}  // namespace leadline::ops
