// SPDX-License-Identifier: Apache-2.0
// How a matrix product is cut into parts for threads; shared by the float and the integer gemm and by convolution.
#pragma once

#include <algorithm>
#include <cstdint>

namespace leadline::kernels {

/// Half-open range of part `index` of `parts` over `count` units of `unit` items, the last unit cut at `limit`.
struct PartRange {
  int64_t begin = 0;
  int64_t end = 0;
};

inline PartRange part_range(int64_t limit, int64_t unit, int64_t parts, int64_t index) {
  const int64_t count = (limit + unit - 1) / unit;
  return {std::min(limit, count * index / parts * unit), std::min(limit, count * (index + 1) / parts * unit)};
}

/// Parts of a product: `parts` ranges of rows, or of columns.
struct GemmSplit {
  int64_t parts = 1;
  bool by_rows = true;
};

/// Rows of the register tile: row parts begin at multiples of it.
inline constexpr int64_t kGemmTileRows = 6;

/// What reading or preparing one element of an operand costs, in multiplications: about what the cores do while one
/// comes from the last level of cache. The same in 4 bytes and in 1, where there are four times as many of both.
inline constexpr double kElementMacs = 8;

/// The longest part of a split into `parts`, in multiplications. It has `rows` of the left side and `columns` of the
/// right one; each element of its rows costs `gather` more to lay out.
inline double part_cost(int64_t rows, int64_t columns, int64_t k, double gather) {
  const auto m = static_cast<double>(rows);
  const auto n = static_cast<double>(columns);
  const auto depth = static_cast<double>(std::max<int64_t>(k, 1));
  return depth * (m * n + (kElementMacs + gather) * m + kElementMacs * n);
}

/// What a part should cost at least, so that handing it out pays: about three microseconds, for floats and for bytes.
inline constexpr double kMinPartCost = 200'000;
inline constexpr double kMinPartCost8 = 600'000;

/// Chooses the split for `threads`: the one whose longest part is shorter. A row part reads all of B, a column part all
/// of A; parts end at whole tiles.
inline GemmSplit split_gemm(int64_t m, int64_t n, int64_t k, int64_t column_grain, int threads, double gather = 0,
                            double least = kMinPartCost) {
  const double affordable = std::min<double>(threads, part_cost(m, n, k, gather) / least);
  const auto wanted = std::max<int64_t>(1, static_cast<int64_t>(affordable));
  const int64_t row_units = (m + kGemmTileRows - 1) / kGemmTileRows;
  const int64_t column_units = (n + column_grain - 1) / column_grain;
  const int64_t row_parts = std::clamp<int64_t>(row_units, 1, wanted);
  const int64_t column_parts = std::clamp<int64_t>(column_units, 1, wanted);
  const int64_t rows = (row_units + row_parts - 1) / row_parts * kGemmTileRows;
  const int64_t columns = std::min(n, (column_units + column_parts - 1) / column_parts * column_grain);
  GemmSplit split;
  split.by_rows = part_cost(rows, n, k, gather) <= part_cost(row_units * kGemmTileRows, columns, k, gather);
  split.parts = split.by_rows ? row_parts : column_parts;
  return split;
}

}  // namespace leadline::kernels
