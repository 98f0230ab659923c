// SPDX-License-Identifier: Apache-2.0
// float32 product of a matrix and a vector, the matrix read once and as it is in memory.
#pragma once

#include <cstdint>

namespace leadline::kernels {

/// y[j] = sum over k of x[k] * b[k * ldb + j] for j < n: every row of B times one number. One output is the same chain
/// of additions over k, first to last: with `add` it continues from what y holds.
void gemv_rows_f32(const float* x, const float* b, int64_t ldb, int64_t n, int64_t k, float* y, bool add) noexcept;

/// Ranges of k given to gemv_dots_f32() begin at a multiple of this.
inline constexpr int64_t kDotsDepthGrain = 64;
/// Floats that the sums of one output take between two ranges of k.
inline constexpr int64_t kDotsState = 32;

/// y[j] = sum over k of b[j * ldb + k] * x[k] for j < n: a dot product for every row of B. An output is summed in an
/// order that depends on k alone.
void gemv_dots_f32(const float* x, const float* b, int64_t ldb, int64_t n, int64_t k, float* y) noexcept;
/// The part over k in [k_begin, k_end). Calls over ascending ranges that cover [0, k) give the bits of the whole; the
/// sums are in `state` between them, kDotsState floats for each output, and y is written by the last.
void gemv_dots_f32_slice(const float* x, const float* b, int64_t ldb, int64_t n, int64_t k, int64_t k_begin,
                         int64_t k_end, float* state, float* y) noexcept;

}  // namespace leadline::kernels
