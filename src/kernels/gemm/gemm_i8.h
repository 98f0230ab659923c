// SPDX-License-Identifier: Apache-2.0
// 8-bit matrix product with exact int32 sums: acc[m,n] = sum over k of (a[m,k] - za) * (b[n,k] - zb) + bias[n],
// followed by one of three output stages. Sums wrap modulo 2^32, so they are exact whenever the result fits int32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/index_range.h"
#include "kernels/gemm/gemm_f32.h"

namespace leadline::kernels {

/// The product without its output. All pointers are borrowed and only read. Strides count elements.
/// m, n, k may be 0.
struct GemmI8 {
  const void* a = nullptr;  // int8_t, or uint8_t when a_unsigned; row i at element i * lda
  bool a_unsigned = false;
  int64_t lda = 0;
  bool a_slack = false;  // up to 3 bytes behind the k values of every row may be read, whatever they hold
  int64_t m = 0;
  int32_t a_zero_point = 0;                    // in the range of a's type
  const int32_t* a_row_zero_points = nullptr;  // m values that replace a_zero_point, or null
  const std::byte* b = nullptr;                // written by pack_i8 or pack_u8 in this process; kAlignment-aligned
  int32_t b_zero_point = 0;                    // of the values as pack_i8 stored them: pack_u8 stores b - 128
  int64_t n = 0;
  int64_t k = 0;
  const int32_t* bias = nullptr;  // n values, or null for zeros
};

/// The sums themselves. `c` must not overlap the operands (so for every output stage).
struct AccumulatorOutput {
  int32_t* c = nullptr;
  int64_t ldc = 0;
};

/// q = clamp(round_half_even(float(acc) * scale[n]) + zero_point, lo, hi), stored as int8_t or uint8_t.
/// lo and hi lie in the range of the stored type; scales are finite.
struct RequantizedOutput {
  void* c = nullptr;
  bool c_unsigned = false;
  int64_t ldc = 0;
  const float* scale = nullptr;  // n values, also when B is quantized per tensor
  int32_t zero_point = 0;
  int32_t lo = -128;
  int32_t hi = 127;
};

/// out = clamp(float(acc) * row_scale[m * row_scale_stride] * scale[n] + bias[n], lo, hi): hybrid models.
/// GemmI8::bias is normally null here. The last product and sum are fused where the CPU can.
struct DequantizedOutput {
  float* c = nullptr;
  int64_t ldc = 0;
  const float* row_scale = nullptr;
  int64_t row_scale_stride = 1;  // 0: one scale for all rows
  const float* scale = nullptr;  // n values
  const float* bias = nullptr;   // n values, or null for zeros
  float lo = -std::numeric_limits<float>::infinity();
  float hi = std::numeric_limits<float>::infinity();
};

/// Bytes of a packed B: about k * n with n rounded up to 16 and k to 4, and 4 * n for column sums. The same on every
/// CPU; the layout inside is not, so packed bytes do not leave the process.
int64_t packed_bytes_i8(int64_t n, int64_t k) noexcept;

/// Packs columns and k of B, given as [N,K], rows `ldb` elements apart. `b` points at the first of them; `packed` is
/// that of the whole matrix, kAlignment-aligned. Bytes behind a narrow last panel stay as they were. Ranges of k of the
/// same columns are packed in ascending order: they add up the column sums.
void pack_i8(const int8_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
             IndexRange depth) noexcept;
/// Stores b - 128: give GemmI8::b_zero_point minus 128 too.
void pack_u8(const uint8_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
             IndexRange depth) noexcept;
/// B given as [K,N], rows `ldb` elements apart (BATCH_MATMUL).
void pack_i8_kn(const int8_t* b, int64_t ldb, int64_t n, int64_t k, std::byte* packed, IndexRange columns,
                IndexRange depth) noexcept;

/// k that gemm_i8_range() takes at most, some milliseconds for one tile; gemm_i8_deep() has no limit.
inline constexpr int64_t kGemmMaxDepth = int64_t{1} << 22;
/// k that gemm_i8_deep() takes at most in one call.
inline constexpr int64_t kGemmDeepSlice = int64_t{1} << 20;

/// Rows that gemm_i8_range() prepares at a time: products cut at multiples of it cost no more than whole ones.
int64_t gemm_i8_row_block(int64_t k) noexcept;

/// Bytes of workspace for a product of up to m rows; bounded by about 64 KiB or 6 rows of A as int16, whichever is
/// more. A multiple of kAlignment.
int64_t gemm_i8_workspace_bytes(int64_t m, int64_t k) noexcept;

/// Computes the outputs [row_begin..row_end, col_begin..col_end). Disjoint ranges may run at the same time, each with
/// its own workspace (kAlignment-aligned, gemm_i8_workspace_bytes(row_end - row_begin, k)).
/// col_begin is a multiple of kGemmColumnGrain; col_end too, unless it is n.
void gemm_i8_range(const GemmI8& g, const AccumulatorOutput& out, int64_t row_begin, int64_t row_end, int64_t col_begin,
                   int64_t col_end, std::byte* workspace) noexcept;
void gemm_i8_range(const GemmI8& g, const RequantizedOutput& out, int64_t row_begin, int64_t row_end, int64_t col_begin,
                   int64_t col_end, std::byte* workspace) noexcept;
void gemm_i8_range(const GemmI8& g, const DequantizedOutput& out, int64_t row_begin, int64_t row_end, int64_t col_begin,
                   int64_t col_end, std::byte* workspace) noexcept;

/// Adds k in [k_begin, k_end) to the sums of one row and at most kGemmColumnGrain columns; `a` points at column k_begin
/// of A's rows, k_begin is a multiple of kPackDepthGrain. The sums are in the workspace. Calls with ascending ranges
/// that cover [0, k) compute the outputs: the last one writes them.
struct GemmSlice {
  int64_t row = 0;
  IndexRange columns;
  IndexRange depth;
};
void gemm_i8_deep(const GemmI8& g, const AccumulatorOutput& out, const GemmSlice& slice, std::byte* workspace) noexcept;
void gemm_i8_deep(const GemmI8& g, const RequantizedOutput& out, const GemmSlice& slice, std::byte* workspace) noexcept;
void gemm_i8_deep(const GemmI8& g, const DequantizedOutput& out, const GemmSlice& slice, std::byte* workspace) noexcept;

}  // namespace leadline::kernels
