// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent/matrix.h"

#include <algorithm>
#include <cmath>

#include "kernels/elementwise/unary_f32.h"
#include "kernels/gemm/gemv_f32.h"

namespace leadline::kernels {

void activate(CellActivation activation, const float* in, float* out, int64_t count) noexcept {
  switch (activation) {
    case CellActivation::kNone:
      if (in != out) std::copy_n(in, count, out);
      return;
    case CellActivation::kRelu:
      for (int64_t i = 0; i < count; ++i) out[i] = std::max(0.0F, in[i]);
      return;
    case CellActivation::kReluN1To1:
      for (int64_t i = 0; i < count; ++i) out[i] = std::max(-1.0F, std::min(in[i], 1.0F));
      return;
    case CellActivation::kRelu6:
      for (int64_t i = 0; i < count; ++i) out[i] = std::max(0.0F, std::min(in[i], 6.0F));
      return;
    case CellActivation::kTanh:
      return unary_row_f32(UnaryF32::kTanh)(in, out, count, 0.0F, 0.0F);
    case CellActivation::kSignBit:
      for (int64_t i = 0; i < count; ++i) out[i] = std::signbit(in[i]) ? 1.0F : 0.0F;
      return;
  }
}

void multiply_add(const WeightMatrix& m, const RowOperand& vector, IndexRange rows, int64_t columns,
                  float* result) noexcept {
  if (m.diagonal) {
    for (int64_t r = rows.begin; r < rows.end; ++r) result[r] += m.f32[r] * vector.values[r];
  } else if (m.f32 != nullptr) {
    float products[kRowsTogether];
    for (int64_t r = rows.begin; r < rows.end; r += kRowsTogether) {
      const int64_t count = std::min(kRowsTogether, rows.end - r);
      gemv_dots_f32(vector.values, m.f32 + r * columns, columns, count, columns, products);
      for (int64_t i = 0; i < count; ++i) result[r + i] += products[i];
    }
  } else {
    const float scale = m.scale * vector.row.scale;
    multiply_rows(m.i8, vector.quantized, vector.row.zero_point, rows, columns,
                  [&](int64_t r, int64_t sum) { result[r] += static_cast<float>(sum) * scale; });
  }
}

}  // namespace leadline::kernels
