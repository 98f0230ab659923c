// SPDX-License-Identifier: Apache-2.0
// How a matrix product is cut into parts for threads; shared by the float and the integer gemm and by convolution.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/thread_pool.h"
#include "kernels/gemm/gemm_f32.h"

namespace leadline::ops {

/// Part `index` of `parts` over [0, limit) in units of `unit` items, the last unit cut at `limit`.
inline IndexRange part_range(int64_t limit, int64_t unit, int64_t parts, int64_t index) {
  const int64_t count = (limit + unit - 1) / unit;
  return {std::min(limit, count * index / parts * unit), std::min(limit, count * (index + 1) / parts * unit)};
}

/// Parts of a product: `parts` ranges of rows, or of columns.
struct GemmSplit {
  int64_t parts = 1;
  bool by_rows = true;
};

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
  const int64_t row_units = (m + kernels::kGemmTileRows - 1) / kernels::kGemmTileRows;
  const int64_t column_units = (n + column_grain - 1) / column_grain;
  const int64_t row_parts = std::clamp<int64_t>(row_units, 1, wanted);
  const int64_t column_parts = std::clamp<int64_t>(column_units, 1, wanted);
  const int64_t rows = (row_units + row_parts - 1) / row_parts * kernels::kGemmTileRows;
  const int64_t columns = std::min(n, (column_units + column_parts - 1) / column_parts * column_grain);
  GemmSplit split;
  split.by_rows = part_cost(rows, n, k, gather) <= part_cost(row_units * kernels::kGemmTileRows, columns, k, gather);
  split.parts = split.by_rows ? row_parts : column_parts;
  return split;
}

/// Divides `count` items of `cost` each among `slots` parts that run at the same time, each with scratch of its own:
/// calls body(slot, begin, end) for pieces of them.
template <typename Body>
void for_slots(ThreadPool& pool, int64_t slots, int64_t count, double cost, const Body& body) {
  pool.for_pieces(slots, kWholePiece, [&](int64_t from, int64_t to) {
    for (int64_t slot = from; slot < to; ++slot) {
      const IndexRange part = part_range(count, 1, slots, slot);
      for_pieces(part.size(), cost,
                 [&](int64_t begin, int64_t end) { body(slot, part.begin + begin, part.begin + end); });
    }
  });
}

/// Divides `columns` of `cost` each among the threads: calls body(range) for every part. For work whose rows must be
/// taken in order; a part is not cut into pieces.
template <typename Body>
void for_column_parts(ThreadPool& pool, int64_t columns, double cost, const Body& body) {
  const double worth = static_cast<double>(columns) * cost / ThreadPool::kPartCost;
  const double affordable = std::min(worth, static_cast<double>(pool.size()));
  const int64_t parts = std::clamp<int64_t>(static_cast<int64_t>(affordable), 1, std::max<int64_t>(columns, 1));
  pool.for_pieces(parts, kWholePiece, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(part_range(columns, 1, parts, i));
  });
}

/// Calls run(rows, columns, part) for the parts of a product, each on a thread of its own.
template <typename Run>
void for_parts(ThreadPool& pool, const GemmSplit& split, int64_t m, int64_t n, int64_t column_grain, const Run& run) {
  pool.for_pieces(split.parts, kWholePiece, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const IndexRange whole_rows{0, m};
      const IndexRange whole_columns{0, n};
      run(split.by_rows ? part_range(m, kernels::kGemmTileRows, split.parts, part) : whole_rows,
          split.by_rows ? whole_columns : part_range(n, column_grain, split.parts, part), part);
    }
  });
}

}  // namespace leadline::ops
