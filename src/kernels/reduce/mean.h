// SPDX-License-Identifier: Apache-2.0
// Sums and means over rows of NHWC images and the like, vectorised over the columns; sums of contiguous floats.
// Bit for bit what reduce_columns() and reduce_rows() of kernels/reduce/reduce.h give with SumOp.
#pragma once

#include <cstdint>

namespace leadline::kernels {

/// `rows` rows of `columns` values each, `stride` values apart; column c gives out[c].
template <typename T>
struct ColumnSums {
  const T* in = nullptr;
  int64_t stride = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  T* out = nullptr;
};

/// out = float(sum / divisor).
using MeanColumnsF32 = void (*)(const ColumnSums<float>& c, double divisor);
MeanColumnsF32 mean_columns_f32();

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
using MeanColumns8 = void (*)(const ColumnSums<T>& c, const MeanLevel& level);
template <typename T>
MeanColumns8<T> mean_columns_8();

/// The sum of `count` contiguous floats and `sum`.
using AddRowF32 = double (*)(double sum, const float* in, int64_t count);
AddRowF32 add_row_f32();

}  // namespace leadline::kernels
