// SPDX-License-Identifier: Apache-2.0
#include "ops/loops/recurrent.h"

#include "kernels/elementwise/unary_f32.h"

namespace leadline::ops {
namespace {

constexpr double kActivationCost = 4;

/// One row of a matrix that has enormous ones.
float multiply_row(const WeightMatrix& m, const RowOperand& vector, int64_t row, int64_t columns) {
  if (m.f32 == nullptr) {
    const int64_t sum = dot_in_pieces(m.i8 + row * columns, vector.quantized, vector.row.zero_point, columns);
    return static_cast<float>(sum) * (m.scale * vector.row.scale);
  }
  return dot_in_pieces(m.f32 + row * columns, vector.values, columns);
}

}  // namespace

RowOperand row_operand(const float* values, int64_t count, bool hybrid, bool asymmetric, int8_t* quantized) {
  using kernels::RowRule;
  RowOperand result{values, quantized, {}};
  if (hybrid && values != nullptr) {
    result.row =
        quantize_row(values, count, quantized, asymmetric ? RowRule::kTfliteAsymmetric : RowRule::kTfliteSymmetric);
  }
  return result;
}

void multiply_add(const WeightMatrix& matrix, const RowOperand& vector, int64_t rows, int64_t columns, float* result) {
  if (!matrix.diagonal && columns > kLongColumns) {
    for (int64_t r = 0; r < rows; ++r) result[r] += multiply_row(matrix, vector, r, columns);
    return;
  }
  const double cost = matrix.diagonal ? 1 : kDotCost * static_cast<double>(columns) + 4;
  for_pieces(rows, cost,
             [&](int64_t begin, int64_t end) { kernels::multiply_add(matrix, vector, {begin, end}, columns, result); });
}

float dot_in_pieces(const float* a, const float* b, int64_t count) {
  kernels::FloatDot sum;
  for_boxes<1>({{{{0, count}, kernels::FloatDot::kLanes}}}, kDotCost, [&](const auto& box) { sum.add(a, b, box[0]); });
  return sum.total(a, b, count);
}

int64_t dot_in_pieces(const int8_t* weights, const int8_t* values, int32_t zero_point, int64_t count) {
  int64_t sum = 0;
  for_pieces(count, kDotCost, [&](int64_t begin, int64_t end) {
    sum += kernels::dot(weights + begin, values + begin, zero_point, end - begin);
  });
  return sum;
}

void activate_cells(CellActivation activation, const float* in, float* out, int64_t count) {
  for_pieces(count, kActivationCost,
             [&](int64_t begin, int64_t end) { kernels::activate(activation, in + begin, out + begin, end - begin); });
}

void logistic_cells(float* values, int64_t count) {
  const auto row = kernels::unary_row_f32(kernels::UnaryF32::kLogistic);
  for_pieces(count, kActivationCost,
             [&](int64_t begin, int64_t end) { row(values + begin, values + begin, end - begin, 0.0F, 0.0F); });
}

}  // namespace leadline::ops
