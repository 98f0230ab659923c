// SPDX-License-Identifier: Apache-2.0
// The steps of discrete Fourier transforms in double precision, each over a range of its numbers: a transform is a
// sequence of them (ops/loops/fft.h).
#pragma once

#include <complex>
#include <cstdint>

#include "core/index_range.h"

namespace leadline::kernels {

using Complex = std::complex<double>;

/// table[k] = exp(-2 pi i k / n).
void fill_roots(int64_t n, IndexRange range, Complex* table) noexcept;

/// table[k] = exp(-pi i k^2 / n): the factors of Bluestein's transform; n < 2^31.
void fill_chirp(int64_t n, IndexRange range, Complex* table) noexcept;

/// filter[k] = filter[padded - k] = the conjugate of chirp[k].
void fill_chirp_filter(const Complex* chirp, int64_t padded, IndexRange range, Complex* filter) noexcept;

/// Puts number k to the place whose bits are those of k in reverse. n is a power of two.
void reverse_bits(int64_t n, IndexRange range, Complex* data) noexcept;

/// A round of a transform of a power of two: of its n / 2 butterflies those in `range`. They join pairs of transforms
/// of `half` numbers each; `roots` are those of 2 * half.
void join_halves(int64_t half, const Complex* roots, IndexRange range, Complex* data) noexcept;

/// out[k] = a[k] * b[k].
void multiply(const Complex* a, const Complex* b, IndexRange range, Complex* out) noexcept;
/// data[k] = the conjugate of data[k] * factors[k].
void multiply_conjugate(const Complex* factors, IndexRange range, Complex* data) noexcept;
/// out[k] = the conjugate of data[k], times factors[k] and `scale`.
void scale_conjugate(const Complex* data, const Complex* factors, double scale, IndexRange range,
                     Complex* out) noexcept;

/// out[k] = samples[2k] + i samples[2k + 1].
void pair_samples(const double* samples, IndexRange range, Complex* out) noexcept;

/// Turns the transform of `half` pairs into that of the 2 * half samples: bins k and half - k, for k in a range within
/// [1, half / 2]. The transforms of the even and of the odd samples are taken apart by their symmetry and put together.
/// `roots` are those of 2 * half.
void split_pairs(int64_t half, const Complex* roots, IndexRange range, Complex* bins) noexcept;

}  // namespace leadline::kernels
