// SPDX-License-Identifier: Apache-2.0
// float32 product of a matrix and a vector, the matrix read once and as it is in memory.
#pragma once

#include <cstdint>

#include "core/thread_pool.h"

namespace leadline::kernels {

/// y[j] = sum over k of x[k] * b[k * ldb + j] for j < n: every row of B times one number. One output is the same chain
/// of additions over k, first to last.
void gemv_rows_f32(const float* x, const float* b, int64_t ldb, int64_t n, int64_t k, float* y, ThreadPool& pool);

/// y[j] = sum over k of b[j * ldb + k] * x[k] for j < n: a dot product for every row of B. An output is summed in an
/// order that depends on k alone.
void gemv_dots_f32(const float* x, const float* b, int64_t ldb, int64_t n, int64_t k, float* y, ThreadPool& pool);

}  // namespace leadline::kernels
