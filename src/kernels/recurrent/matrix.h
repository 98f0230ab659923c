// SPDX-License-Identifier: Apache-2.0
// What the recurrent kernels compute with: weights in floats or int8, vectors that are quantized for the latter
// ("hybrid"), and activations.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/index_range.h"
#include "kernels/quant/row_quantize.h"
#include "kernels/recurrent/dot.h"
#include "kernels/recurrent/dots_i8.h"

namespace leadline::kernels {

/// What is applied to a cell's values; the numbers are those of the format.
enum class CellActivation : int8_t { kNone = 0, kRelu = 1, kReluN1To1 = 2, kRelu6 = 3, kTanh = 4, kSignBit = 5 };

/// out[i] = f(in[i]); `out` may be `in`.
void activate(CellActivation activation, const float* in, float* out, int64_t count) noexcept;

/// Weights [rows, columns], or only a diagonal (always float), or none. Borrowed.
struct WeightMatrix {
  const float* f32 = nullptr;
  const int8_t* i8 = nullptr;
  float scale = 1.0F;  // of i8
  bool diagonal = false;

  bool present() const { return f32 != nullptr || i8 != nullptr; }
};

/// A vector and, for int8 weights, its quantized form.
struct RowOperand {
  const float* values = nullptr;
  const int8_t* quantized = nullptr;
  RowQuantization row;
};

/// result[r] += row r of the matrix times the vector, for a range of rows.
void multiply_add(const WeightMatrix& matrix, const RowOperand& vector, IndexRange rows, int64_t columns,
                  float* result) noexcept;

/// Rows whose products are on the stack at a time.
inline constexpr int64_t kRowsTogether = 64;

/// Calls body(row, the sum over k of matrix[row, k] * (vector[k] - zero_point)) for a range of rows.
template <typename Body>
void multiply_rows(const int8_t* matrix, const int8_t* vector, int32_t zero_point, IndexRange rows, int64_t columns,
                   const Body& body) noexcept {
  if (columns > kDotsMaxColumns) {
    for (int64_t r = rows.begin; r < rows.end; ++r) body(r, dot(matrix + r * columns, vector, zero_point, columns));
    return;
  }
  int32_t sums[kRowsTogether];
  for (int64_t r = rows.begin; r < rows.end; r += kRowsTogether) {
    const int64_t count = std::min(kRowsTogether, rows.end - r);
    dots_i8(vector, zero_point, matrix + r * columns, count, columns, sums);
    for (int64_t i = 0; i < count; ++i) body(r + i, int64_t{sums[i]});
  }
}

}  // namespace leadline::kernels
