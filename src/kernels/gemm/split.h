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

/// Chooses the split for `threads`. A part of less than kMinPartMacs would cost more to hand out than to run.
inline GemmSplit split_gemm(int64_t m, int64_t n, int64_t k, int64_t column_grain, int threads) {
  constexpr double kMinPartMacs = 100'000;
  const double macs = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(std::max<int64_t>(k, 1));
  const int64_t wanted = std::min<int64_t>(threads, static_cast<int64_t>(macs / kMinPartMacs));
  const int64_t row_units = (m + kGemmTileRows - 1) / kGemmTileRows;
  const int64_t column_units = (n + column_grain - 1) / column_grain;
  GemmSplit split;
  // Row parts read all of B each; with few rows that traffic outweighs the work, so columns are cut instead.
  split.by_rows = row_units >= 4 * wanted || row_units >= column_units;
  split.parts = std::max<int64_t>(1, std::min(wanted, split.by_rows ? row_units : column_units));
  return split;
}

}  // namespace leadline::kernels
