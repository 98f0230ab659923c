// SPDX-License-Identifier: Apache-2.0
// Matrix product of int16 rows with int8 columns and exact sums of up to 38 bits: out[m,n] = scaled(sum over k of
// a[m,k] * b[n,k] + bias[n]), rounded as TFLite rounds the sums of int16 activations (reference::WideRounding).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/index_range.h"
#include "kernels/reference/contraction.h"

namespace leadline::kernels {

/// Products that are added up at most. With a bias below kWideShortBias sums stay below 2^37, and a sum times a factor
/// of 15 bits below 2^52: then float64 holds all of it exactly, with half a unit to spare. Larger biases, as channels
/// with tiny weights have, take integers for that product (WideFinish::exact); above kWideMaxBias float64 does not even
/// hold the sums.
inline constexpr int64_t kWideMaxDepth = int64_t{1} << 14;
inline constexpr double kWideShortBias = 0x1p36;
inline constexpr double kWideMaxBias = 0x1p52;

/// Channels that are computed together.
inline constexpr int64_t kWidePanel = 16;

/// What becomes of the sums of a column. All pointers are borrowed and only read.
struct WideFinish {
  reference::WideRounding rounding = reference::WideRounding::kShortFactor;
  const double* bias = nullptr;    // n whole numbers of magnitude up to kWideMaxBias, or null for zeros
  const double* factor = nullptr;  // n values: of kShortFactor those of wide_factor(), of kReal any; not of kNarrowSum
  const Multiplier* multiplier = nullptr;  // n values; not of kReal
  /// n values: whether one of the kWidePanel channels from this one on has a bias above kWideShortBias.
  const uint8_t* exact = nullptr;
  int32_t lo = -32768;
  int32_t hi = 32767;
};

/// What multiply_wide() multiplies by, as one number.
double wide_factor(Multiplier multiplier) noexcept;

/// Strides count elements. m and n may be 0; k is at least 1.
struct GemmI16 {
  const int16_t* a = nullptr;  // row i at i * lda; k rounded up to even is read, whatever is there
  int64_t lda = 0;
  int64_t m = 0;
  const std::byte* b = nullptr;  // written by pack_i16
  int64_t n = 0;
  int64_t k = 0;
  WideFinish finish;
  int16_t* c = nullptr;  // overlaps no operand
  int64_t ldc = 0;
};

/// Bytes of a packed B: k * n with n rounded up to kWidePanel and k to 2. The layout is the same on every CPU.
int64_t packed_bytes_i16(int64_t n, int64_t k) noexcept;

/// Packs columns and k of B, whose value (n, k) is at n * step_n + k * step_k from `b`, which points at the first of
/// them; `packed` is that of the whole matrix. Columns begin at a multiple of kWidePanel, depth at an even one.
struct WideStrides {
  int64_t n = 0;
  int64_t k = 1;
};
void pack_i16(const int8_t* b, WideStrides step, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
              IndexRange depth) noexcept;

/// Rows that share what is read of B: products cut at multiples of it cost no more than whole ones.
inline constexpr int64_t kWideRows = 12;

/// Computes the outputs [rows, columns]; columns begin at a multiple of kWidePanel. Disjoint ranges may run at the same
/// time.
void gemm_i16_range(const GemmI16& g, IndexRange rows, IndexRange columns) noexcept;

}  // namespace leadline::kernels
