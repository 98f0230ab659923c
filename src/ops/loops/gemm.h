// SPDX-License-Identifier: Apache-2.0
// Matrix products of the kernels, cut into pieces and split over threads.
// Invariant: results do not depend on pieces or threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/thread_pool.h"
#include "kernels/gemm/gemm_f32.h"
#include "kernels/gemm/gemm_i8.h"

namespace leadline::ops {

/// Calls body(range) for the slices of k that kernels::gemm_i8_deep() takes, a piece each.
template <typename Body>
void for_slices(int64_t k, const Body& body) {
  const int64_t count = (k + kernels::kGemmDeepSlice - 1) / kernels::kGemmDeepSlice;
  for_pieces(count, kWholePiece, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * kernels::kGemmDeepSlice;
      body(IndexRange{first, std::min(k, first + kernels::kGemmDeepSlice)});
    }
  });
}

/// Rows and columns of a product, on the calling thread.
void multiply(const kernels::GemmF32& g, IndexRange rows, IndexRange columns);
/// The same for one of several products that are added up: kernels::gemm_f32_part(). k is at most kGemmDepthBlock.
void multiply_part(const kernels::GemmF32& g, IndexRange rows, IndexRange columns, bool first, bool last);

/// The same in 8 bits. Output is one of the kernels' output stages.
template <typename Output>
void multiply(const kernels::GemmI8& g, const Output& out, IndexRange rows, IndexRange columns, std::byte* workspace);

/// The whole product, split over the pool by rows when there are many, by columns when there are few.
void gemm_f32(const kernels::GemmF32& g, ThreadPool& pool);
/// `workspace` has pool.size() * gemm_i8_workspace_bytes(g.m, g.k) bytes.
template <typename Output>
void gemm_i8(const kernels::GemmI8& g, const Output& out, std::byte* workspace, ThreadPool& pool);

/// kernels::gemv_rows_f32() and gemv_dots_f32(), split over the pool.
void gemv_rows_f32(const float* x, const float* b, int64_t ldb, int64_t n, int64_t k, float* y, ThreadPool& pool);
void gemv_dots_f32(const float* x, const float* b, int64_t ldb, int64_t n, int64_t k, float* y, ThreadPool& pool);

}  // namespace leadline::ops
