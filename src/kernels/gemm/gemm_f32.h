// SPDX-License-Identifier: Apache-2.0
// float32 matrix product with packed right-hand side: C[M,N] = clamp(A[M,K] * B[N,K]^T + bias[N], lo, hi).
// Invariant: one output is the same chain of additions over k, first to last, whatever the split into rows,
// columns or threads; so a band of rows has the bits it has in the whole product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/index_range.h"

namespace leadline::kernels {

/// Rows of the register tile: ranges of rows that begin at multiples of it cost no more than whole products.
inline constexpr int64_t kGemmTileRows = 6;

/// Column ranges given to gemm functions begin at a multiple of this (and end at one, or at n).
inline constexpr int64_t kGemmColumnGrain = 32;
/// Ranges of k given to pack functions begin at a multiple of this (and end at one, or at k).
inline constexpr int64_t kPackDepthGrain = 64;
/// Rows and k that are multiplied at a time: the same for them.
inline constexpr int64_t kGemmRowBlock = 96;
inline constexpr int64_t kGemmDepthBlock = 256;

/// One product. All pointers are borrowed; nothing but `c` is written. Strides count elements.
/// m, n, k may be 0; with k == 0 the result is the clamped bias.
/// NaN passes through the clamp.
struct GemmF32 {
  const float* a = nullptr;  // row i at a + i * lda
  int64_t lda = 0;
  int64_t m = 0;
  const std::byte* b = nullptr;  // written by one of the pack functions in this process; kAlignment-aligned
  int64_t n = 0;
  int64_t k = 0;
  const float* bias = nullptr;  // n values, or null for zeros
  float* c = nullptr;           // row i at c + i * ldc; must not overlap a, b or bias
  int64_t ldc = 0;
  float lo = -std::numeric_limits<float>::infinity();
  float hi = std::numeric_limits<float>::infinity();
  /// A is packed by pack_f32_rows, lda == k, and row ranges begin at multiples of kGemmTileRows.
  bool a_packed = false;
};

/// Packs A given as [K,M], rows `lda` elements apart, into k floats for every row, m rounded up to
/// kGemmTileRows.
void pack_f32_rows(const float* a, int64_t lda, int64_t m, int64_t k, float* packed) noexcept;

/// Bytes of a packed B: about 4 * k * n with n rounded up to 16. The same on every CPU, but the layout inside is not:
/// packed bytes do not leave the process.
int64_t packed_bytes_f32(int64_t n, int64_t k) noexcept;

/// Packs columns and k of B, given as [N,K], rows `ldb` elements apart (TFLite's filters: ldb == k). `packed` is that
/// of the whole matrix, kAlignment-aligned, packed_bytes_f32(n, k) long; bytes behind a narrow last panel stay as they
/// were.
void pack_f32(const float* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
              IndexRange depth) noexcept;
/// The same from IEEE float16 bits.
void pack_f32_from_f16(const uint16_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
                       IndexRange depth) noexcept;
/// Packs B given as [K,N], rows `ldb` elements apart (BATCH_MATMUL's right-hand side; pack into scratch, then run).
void pack_f32_kn(const float* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
                 IndexRange depth) noexcept;

/// Computes C[row_begin..row_end, col_begin..col_end). Disjoint ranges may run at the same time.
/// col_begin is a multiple of kGemmColumnGrain; col_end too, unless it is n.
void gemm_f32_range(const GemmF32& g, int64_t row_begin, int64_t row_end, int64_t col_begin, int64_t col_end) noexcept;

/// Adds the part of the product over k in [k_begin, k_end) only: `a` points at column k_begin of A's rows.
/// The bias enters at k_begin == 0, the clamp at k_end == k; between the calls C holds partial sums. The calls over
/// ascending ranges that cover [0, k) give the bits of gemm_f32_range.
void gemm_f32_slice(const GemmF32& g, int64_t row_begin, int64_t row_end, int64_t col_begin, int64_t col_end,
                    int64_t k_begin, int64_t k_end) noexcept;

/// Computes one of several products that are added up in C; `g` describes this one, with its own k. The first starts
/// from the bias, the others from what C holds; the last clamps. In ascending order they give the bits of the product
/// with all their k.
void gemm_f32_part(const GemmF32& g, int64_t row_begin, int64_t row_end, int64_t col_begin, int64_t col_end, bool first,
                   bool last) noexcept;

}  // namespace leadline::kernels
