// SPDX-License-Identifier: Apache-2.0
#include "ops/loops/gemm.h"

#include <algorithm>

#include "kernels/gemm/gemv_f32.h"
#include "ops/loops/split.h"

namespace leadline::ops {
namespace {

using kernels::kGemmColumnGrain;

/// Cost of a multiplication: vectors have 8 or 16 floats, and four times as many bytes.
constexpr double kMacCost = 1.0 / 16;
constexpr double kMacCost8 = 1.0 / 32;
/// What a tile takes before and after its products, in products.
constexpr double kTileMacs = 16;

double cell_cost(double mac, int64_t k) {
  const auto depth = static_cast<double>(std::max<int64_t>(k, 1));
  return mac * (depth + kTileMacs) / depth;
}

/// The part of a product over k in `depth`.
void multiply_slice(const kernels::GemmF32& g, IndexRange rows, IndexRange columns, IndexRange depth) {
  kernels::GemmF32 slice = g;
  slice.a += depth.begin * (g.a_packed ? kernels::kGemmTileRows : 1);
  kernels::gemm_f32_slice(slice, rows.begin, rows.end, columns.begin, columns.end, depth.begin, depth.end);
}

/// More k than the kernel takes at once: slice after slice of one row and one tile of columns.
template <typename Output>
void multiply_deep(const kernels::GemmI8& g, const Output& out, IndexRange rows, IndexRange columns,
                   std::byte* workspace) {
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    for (int64_t col = columns.begin; col < columns.end; col += kGemmColumnGrain) {
      const IndexRange tile{col, std::min(columns.end, col + kGemmColumnGrain)};
      for_slices(g.k, [&](IndexRange depth) {
        kernels::GemmI8 slice = g;
        slice.a = static_cast<const std::byte*>(g.a) + depth.begin;
        kernels::gemm_i8_deep(slice, out, {row, tile, depth}, workspace);
      });
    }
  }
}

/// Outputs of a vector that one thread computes at least: a cache line.
constexpr int64_t kGemvGrain = 16;
/// k of a dot product that is not cut.
constexpr int64_t kDotsDepth = int64_t{1} << 20;
/// Dot products that are computed together.
constexpr int64_t kDotsTogether = 4;

/// Calls run(range) for ranges of the n outputs of a matrix times a vector, on all threads.
template <typename Run>
void for_outputs(ThreadPool& pool, int64_t n, int64_t k, const Run& run) {
  const GemmSplit split = split_gemm(1, n, k, kGemvGrain, pool.size());
  pool.for_pieces(split.parts, kWholePiece, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) run(part_range(n, kGemvGrain, split.parts, part));
  });
}

}  // namespace

void multiply(const kernels::GemmF32& g, IndexRange rows, IndexRange columns) {
  const double cost = cell_cost(kMacCost, g.k);
  const BoxAxis depth{{0, g.k}, kernels::kGemmDepthBlock};
  if (rows.size() <= kernels::kGemmTileRows) {
    // Sums of one tile of rows stay in registers from first to last k; so columns are cut first.
    for_boxes<3>({{{columns, 8 * kGemmColumnGrain}, depth, {rows, kernels::kGemmTileRows}}}, cost,
                 [&](const auto& box) { multiply_slice(g, box[2], box[0], box[1]); });
  } else {
    for_boxes<3>({{{rows, kernels::kGemmRowBlock}, depth, {columns, kGemmColumnGrain}}}, cost,
                 [&](const auto& box) { multiply_slice(g, box[0], box[2], box[1]); });
  }
}

void multiply_part(const kernels::GemmF32& g, IndexRange rows, IndexRange columns, bool first, bool last) {
  const double cost = cell_cost(kMacCost, g.k) * static_cast<double>(g.k);
  for_boxes<2>({{{rows, kernels::kGemmRowBlock}, {columns, kGemmColumnGrain}}}, cost, [&](const auto& box) {
    kernels::gemm_f32_part(g, box[0].begin, box[0].end, box[1].begin, box[1].end, first, last);
  });
}

template <typename Output>
void multiply(const kernels::GemmI8& g, const Output& out, IndexRange rows, IndexRange columns, std::byte* workspace) {
  if (g.k > kernels::kGemmMaxDepth) return multiply_deep(g, out, rows, columns, workspace);
  const double cost = cell_cost(kMacCost8, g.k) * static_cast<double>(std::max<int64_t>(g.k, 1));
  for_boxes<2>({{{rows, kernels::gemm_i8_row_block(g.k)}, {columns, kGemmColumnGrain}}}, cost, [&](const auto& box) {
    kernels::gemm_i8_range(g, out, box[0].begin, box[0].end, box[1].begin, box[1].end, workspace);
  });
}

void gemm_f32(const kernels::GemmF32& g, ThreadPool& pool) {
  const GemmSplit split = split_gemm(g.m, g.n, g.k, kGemmColumnGrain, pool.size());
  for_parts(pool, split, g.m, g.n, kGemmColumnGrain,
            [&](IndexRange rows, IndexRange columns, int64_t /*part*/) { multiply(g, rows, columns); });
}

template <typename Output>
void gemm_i8(const kernels::GemmI8& g, const Output& out, std::byte* workspace, ThreadPool& pool) {
  const GemmSplit split = split_gemm(g.m, g.n, g.k, kGemmColumnGrain, pool.size(), 0, kMinPartCost8);
  const int64_t slot = kernels::gemm_i8_workspace_bytes(g.m, g.k);
  for_parts(pool, split, g.m, g.n, kGemmColumnGrain, [&](IndexRange rows, IndexRange columns, int64_t part) {
    multiply(g, out, rows, columns, workspace + part * slot);
  });
}

#define LEADLINE_OUTPUT_STAGE(Output)                                                                         \
  template void multiply(const kernels::GemmI8&, const kernels::Output&, IndexRange, IndexRange, std::byte*); \
  template void gemm_i8(const kernels::GemmI8&, const kernels::Output&, std::byte*, ThreadPool&)
LEADLINE_OUTPUT_STAGE(AccumulatorOutput);
LEADLINE_OUTPUT_STAGE(RequantizedOutput);
LEADLINE_OUTPUT_STAGE(DequantizedOutput);
#undef LEADLINE_OUTPUT_STAGE

void gemv_rows_f32(const float* x, const float* b, int64_t ldb, int64_t n, int64_t k, float* y, ThreadPool& pool) {
  constexpr int64_t kColumns = 2048;  // sums that stay in the first-level cache
  for_outputs(pool, n, k, [&](IndexRange outputs) {
    const int64_t columns = std::clamp(outputs.size(), kGemvGrain, kColumns);
    for_boxes<2>({{{outputs, columns}, {{0, k}, 8}}}, kMacCost, [&](const auto& box) {
      const int64_t col = box[0].begin;
      const int64_t row = box[1].begin;
      kernels::gemv_rows_f32(x + row, b + row * ldb + col, ldb, box[0].size(), box[1].size(), y + col, row > 0);
    });
  });
}

void gemv_dots_f32(const float* x, const float* b, int64_t ldb, int64_t n, int64_t k, float* y, ThreadPool& pool) {
  for_outputs(pool, n, k, [&](IndexRange outputs) {
    if (k <= kDotsDepth) {
      return for_boxes<1>({{{outputs, kDotsTogether}}}, kMacCost * static_cast<double>(k), [&](const auto& box) {
        kernels::gemv_dots_f32(x, b + box[0].begin * ldb, ldb, box[0].size(), k, y + box[0].begin);
      });
    }
    for (int64_t j = outputs.begin; j < outputs.end; j += kDotsTogether) {
      float state[kDotsTogether * kernels::kDotsState];
      const int64_t together = std::min(kDotsTogether, outputs.end - j);
      for_boxes<1>({{{{0, k}, kernels::kDotsDepthGrain}}}, kMacCost * kDotsTogether, [&](const auto& box) {
        kernels::gemv_dots_f32_slice(x, b + j * ldb, ldb, together, k, box[0].begin, box[0].end, state, y + j);
      });
    }
  });
}

}  // namespace leadline::ops
