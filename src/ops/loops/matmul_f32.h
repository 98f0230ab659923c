// SPDX-License-Identifier: Apache-2.0
// float32 product of two matrices as they are in memory, either of them transposed: for operands that are computed
// while running and may be as large as memory. Blocks of both are packed as they are needed, by all threads together,
// so that the workspace has a few MB whatever the size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/thread_pool.h"

namespace leadline::ops {

/// C[M,N] = clamp(A * B + bias[N], lo, hi). All pointers are borrowed; nothing but `c` is written, and it must not
/// overlap the others. Strides count elements. m, n, k may be 0. NaN passes through the clamp.
struct MatmulF32 {
  const float* a = nullptr;  // [M,K], or [K,M] when a_transposed; rows lda apart
  int64_t lda = 0;
  bool a_transposed = false;
  const float* b = nullptr;  // [K,N], or [N,K] when b_transposed; rows ldb apart
  int64_t ldb = 0;
  bool b_transposed = false;
  int64_t m = 0, n = 0, k = 0;
  const float* bias = nullptr;  // n values, or null for zeros
  float* c = nullptr;           // rows ldc apart
  int64_t ldc = 0;
  float lo = -std::numeric_limits<float>::infinity();
  float hi = std::numeric_limits<float>::infinity();
};

/// Bytes of workspace for a product of this size: at most 3 MiB. A multiple of kAlignment.
int64_t matmul_f32_workspace_bytes(int64_t m, int64_t n, int64_t k, bool a_transposed);

/// The whole product on the pool. One output is the same chain of additions over k, first to last, whatever the number
/// of threads. `workspace` is kAlignment-aligned.
void matmul_f32(const MatmulF32& g, std::byte* workspace, ThreadPool& pool);

}  // namespace leadline::ops
