// SPDX-License-Identifier: Apache-2.0
// C is computed in blocks that stay in the third-level cache while k runs from first to last in slices. For each slice
// the threads pack their shares of A's rows and B's columns, wait for each other, and multiply.
#include "ops/loops/matmul_f32.h"

#include <algorithm>
#include <cstring>

#include "core/buffer.h"
#include "kernels/gemm/gemm_f32.h"
#include "ops/loops/gemm.h"
#include "ops/loops/split.h"

namespace leadline::ops {
namespace {

using kernels::kGemmColumnGrain;
using kernels::kGemmTileRows;

// A block of C has 8 MiB. A larger one needs less packing (each packed value is used for as many products as the block
// has rows or columns) and more cache.
constexpr int64_t kBlockRows = 2046;  // a multiple of the tile's rows
constexpr int64_t kBlockColumns = 1024;
constexpr int64_t kDepth = kernels::kGemmDepthBlock;
static_assert(kBlockRows % kGemmTileRows == 0 && kBlockColumns % kGemmColumnGrain == 0);

/// A's rows are read as they are when that is contiguous, and B has too few columns to earn back a copy.
constexpr int64_t kFewColumns = 192;

/// Packing fewer values takes less time than handing it out.
constexpr int64_t kMinPackedValues = 32 * 1024;

bool packs_rows(bool transposed, int64_t n) { return transposed || n > kFewColumns; }

/// Packs A's rows [begin, end), columns [k, k + depth): tiles where A is transposed, else rows of `depth`.
void pack_left(const MatmulF32& g, int64_t begin, int64_t end, int64_t k, int64_t depth, float* target) {
  if (g.a_transposed) return kernels::pack_f32_rows(g.a + k * g.lda + begin, g.lda, end - begin, depth, target);
  for (int64_t row = begin; row < end; ++row, target += depth) {
    std::memcpy(target, g.a + row * g.lda + k, static_cast<size_t>(depth) * sizeof(float));
  }
}

/// Bytes of A's packed rows, for a slice of k and a block of C.
int64_t packed_rows_bytes(int64_t rows, int64_t depth) {
  return align_up((rows + kGemmTileRows - 1) / kGemmTileRows * kGemmTileRows * depth * 4);
}

/// Packs B's columns [begin, end), rows [k, k + depth) to where they lie in a packed block that starts at `col`.
void pack_right(const MatmulF32& g, int64_t col, int64_t begin, int64_t end, int64_t k, int64_t depth,
                std::byte* target) {
  std::byte* to = target + (begin - col) * depth * static_cast<int64_t>(sizeof(float));
  if (g.b_transposed) {
    kernels::pack_f32(g.b + begin * g.ldb + k, g.ldb, end - begin, depth, to, {0, end - begin}, {0, depth});
  } else {
    kernels::pack_f32_kn(g.b + k * g.ldb + begin, g.ldb, end - begin, depth, to, {0, end - begin}, {0, depth});
  }
}

struct Block {
  int64_t row = 0, rows = 0;
  int64_t col = 0, cols = 0;
};

void multiply_block(const MatmulF32& g, const Block& block, std::byte* workspace, ThreadPool& pool) {
  const bool packs_a = packs_rows(g.a_transposed, g.n);
  auto* packed_a = reinterpret_cast<float*>(workspace);
  std::byte* packed_b = workspace + (packs_a ? packed_rows_bytes(block.rows, std::min(g.k, kDepth)) : 0);
  const auto multiply_slice = [&](int64_t k) {
    const int64_t depth = std::min(kDepth, g.k - k);
    const GemmSplit split = split_gemm(block.rows, block.cols, depth, kGemmColumnGrain, pool.size());
    const int64_t packers = (block.rows + block.cols) * depth < kMinPackedValues ? 1 : split.parts;
    pool.for_pieces(packers, kWholePiece, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        const IndexRange cols = part_range(block.cols, kGemmColumnGrain, packers, part);
        pack_right(g, block.col, block.col + cols.begin, block.col + cols.end, k, depth, packed_b);
        if (!packs_a) continue;
        const IndexRange rows = part_range(block.rows, kGemmTileRows, packers, part);
        pack_left(g, block.row + rows.begin, block.row + rows.end, k, depth, packed_a + rows.begin * depth);
      }
    });
    const kernels::GemmF32 product{.a = packs_a ? packed_a : g.a + block.row * g.lda + k,
                                   .lda = packs_a ? depth : g.lda,
                                   .m = block.rows,
                                   .b = packed_b,
                                   .n = block.cols,
                                   .k = depth,
                                   .bias = g.bias == nullptr ? nullptr : g.bias + block.col,
                                   .c = g.c + block.row * g.ldc + block.col,
                                   .ldc = g.ldc,
                                   .lo = g.lo,
                                   .hi = g.hi,
                                   .a_packed = g.a_transposed};
    for_parts(pool, split, block.rows, block.cols, kGemmColumnGrain,
              [&](IndexRange rows, IndexRange columns, int64_t /*part*/) {
                multiply_part(product, rows, columns, k == 0, k + depth == g.k);
              });
  };
  const auto cells = static_cast<double>(block.rows * block.cols / 16 + block.rows + block.cols);
  for_pieces(std::max<int64_t>(1, (g.k + kDepth - 1) / kDepth), cells * kDepth, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) multiply_slice(i * kDepth);
  });
}

}  // namespace

int64_t matmul_f32_workspace_bytes(int64_t m, int64_t n, int64_t k, bool a_transposed) {
  const int64_t depth = std::min(k, kDepth);
  const int64_t rows = packs_rows(a_transposed, n) ? packed_rows_bytes(std::min(m, kBlockRows), depth) : 0;
  return rows + align_up(kernels::packed_bytes_f32(std::min(n, kBlockColumns), depth));
}

void matmul_f32(const MatmulF32& g, std::byte* workspace, ThreadPool& pool) {
  const int64_t across = (g.n + kBlockColumns - 1) / kBlockColumns;
  const int64_t blocks = (g.m + kBlockRows - 1) / kBlockRows * across;
  const auto cost =
      static_cast<double>(std::min(g.m, kBlockRows) * std::min(g.n, kBlockColumns)) * static_cast<double>(g.k) / 16;
  for_pieces(blocks, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / across * kBlockRows;
      const int64_t col = i % across * kBlockColumns;
      multiply_block(g, {row, std::min(kBlockRows, g.m - row), col, std::min(kBlockColumns, g.n - col)}, workspace,
                     pool);
    }
  });
}

}  // namespace leadline::ops
