// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms of any length in double precision, in pieces. Powers of two run directly, other lengths
// as a convolution of a power of two (Bluestein). A plan is a few numbers: its tables are in memory of the caller.
#pragma once

#include <cstdint>

#include "kernels/fft/fft.h"

namespace leadline::ops {

using kernels::Complex;

/// Forward transform of complex numbers.
class Fft {
 public:
  /// `length` is 1 to 2^31.
  explicit Fft(int64_t length);

  int64_t length() const { return length_; }
  /// Sizes, in complex numbers, of the table that fill_table() writes once and of the workspace of forward().
  int64_t table_size() const;
  int64_t workspace_size() const { return padded_; }

  void fill_table(Complex* table) const;
  /// Replaces length() numbers by their transform.
  void forward(const Complex* table, Complex* data, Complex* workspace) const;

 private:
  int64_t length_;
  int64_t padded_;  // 0 for a power of two, otherwise the length of the convolution
};

/// Forward transform of real numbers: the bins 0 .. length / 2.
class RealFft {
 public:
  explicit RealFft(int64_t length);

  int64_t length() const { return length_; }
  int64_t bins() const { return length_ / 2 + 1; }
  int64_t table_size() const;
  int64_t workspace_size() const;

  void fill_table(Complex* table) const;
  /// Reads length() samples, writes bins() numbers. The three areas do not overlap.
  void forward(const Complex* table, const double* samples, Complex* bins, Complex* workspace) const;

 private:
  bool even() const { return length_ % 2 == 0; }

  int64_t length_;
  Fft inner_;  // of the samples taken as pairs, or of all samples when their number is odd
};

}  // namespace leadline::ops
