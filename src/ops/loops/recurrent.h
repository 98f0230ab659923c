// SPDX-License-Identifier: Apache-2.0
// What the steps of recurrent cells have in common: vectors times matrices and activations, in pieces.
#pragma once

#include <cstdint>

#include "core/work.h"
#include "kernels/recurrent/dot.h"
#include "kernels/recurrent/matrix.h"
#include "ops/loops/quantize_rows.h"

namespace leadline::ops {

using kernels::CellActivation;
using kernels::RowOperand;
using kernels::WeightMatrix;

/// Quantizes into `quantized` when `hybrid`. A null vector stays null.
RowOperand row_operand(const float* values, int64_t count, bool hybrid, bool asymmetric, int8_t* quantized);

/// result[r] += row r of the matrix times the vector.
void multiply_add(const WeightMatrix& matrix, const RowOperand& vector, int64_t rows, int64_t columns, float* result);

/// Calls body(row, the sum over k of matrix[row, k] * (vector[k] - zero_point)) for all rows, in order.
template <typename Body>
void multiply_rows(const int8_t* matrix, const int8_t* vector, int32_t zero_point, int64_t rows, int64_t columns,
                   const Body& body);

/// The sum of a[i] * b[i], the bits of kernels::dot().
float dot_in_pieces(const float* a, const float* b, int64_t count);
/// The sum of weights[i] * (values[i] - zero_point).
int64_t dot_in_pieces(const int8_t* weights, const int8_t* values, int32_t zero_point, int64_t count);

/// Rows of a matrix that are multiplied in one piece have at most this many columns.
inline constexpr int64_t kLongColumns = int64_t{1} << 20;
/// Cost of one multiplication of a dot product.
inline constexpr double kDotCost = 1.0 / 4;

/// out[i] = f(in[i]); `out` may be `in`.
void activate_cells(CellActivation activation, const float* in, float* out, int64_t count);
void logistic_cells(float* values, int64_t count);

template <typename Body>
void multiply_rows(const int8_t* matrix, const int8_t* vector, int32_t zero_point, int64_t rows, int64_t columns,
                   const Body& body) {
  if (columns > kLongColumns) {
    for (int64_t r = 0; r < rows; ++r) {
      body(r, dot_in_pieces(matrix + r * columns, vector, zero_point, columns));
    }
    return;
  }
  for_pieces(rows, kDotCost / 4 * static_cast<double>(columns) + 8, [&](int64_t begin, int64_t end) {
    kernels::multiply_rows(matrix, vector, zero_point, {begin, end}, columns, body);
  });
}

}  // namespace leadline::ops
