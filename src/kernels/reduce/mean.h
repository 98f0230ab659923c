// SPDX-License-Identifier: Apache-2.0
// Sums and means over rows of NHWC images and the like, vectorised over the columns; sums of contiguous floats.
// Bit for bit what reduce_columns() and reduce_rows() of kernels/reduce/reduce.h give with SumOp.
#pragma once

#include <cstdint>

#include "core/index_range.h"

namespace leadline::kernels {

/// `rows` rows of `columns` values each, `stride` values apart; column c is reduced to out[c].
template <typename T>
struct ColumnSums {
  const T* in = nullptr;
  int64_t stride = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  T* out = nullptr;
};

/// Columns that sums are kept of between ranges of rows, and rows that these ranges begin at multiples of.
inline constexpr int64_t kMaxStoredColumns = 512;
inline constexpr int64_t kColumnSumRows = 256;

/// The sums of columns between two ranges of rows.
struct ColumnState {
  alignas(64) double sums[kMaxStoredColumns + 64];
};

/// out = float(sum / divisor). Ranges of rows ascend and cover all; the last one writes the output. `state` may be null
/// for all rows at once.
using MeanColumnsF32 = void (*)(const ColumnSums<float>& c, double divisor, IndexRange rows,
                                ColumnState* state) noexcept;
MeanColumnsF32 mean_columns_f32() noexcept;

/// Rows that 8-bit sums may have.
inline constexpr int64_t kMaxSummedRows8 = int64_t{1} << 22;

/// How a sum of 8-bit levels becomes a level: clamp(round_half_even(float(sum + offset) * scale) + zero_point), where
/// the clamp to T's range comes before the rounding. `sum + offset` must fit into 32 bits, `scale` be finite.
struct MeanLevel {
  int32_t offset = 0;
  float scale = 0.0F;
  int32_t zero_point = 0;
};

/// T is int8_t or uint8_t.
template <typename T>
using MeanColumns8 = void (*)(const ColumnSums<T>& c, const MeanLevel& level, IndexRange rows,
                              ColumnState* state) noexcept;
template <typename T>
MeanColumns8<T> mean_columns_8() noexcept;

/// The sum of `count` contiguous floats and `sum`.
using AddRowF32 = double (*)(double sum, const float* in, int64_t count) noexcept;
AddRowF32 add_row_f32() noexcept;
/// Sums of a row that is added range by range do not depend on the ranges if these begin at multiples of this.
inline constexpr int64_t kAddRowGrain = 2048;

}  // namespace leadline::kernels
