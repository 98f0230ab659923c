// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent/matrix.h"

#include <algorithm>
#include <cmath>

#include "kernels/elementwise/unary_f32.h"
#include "kernels/recurrent/dot.h"

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
    for (int64_t r = rows.begin; r < rows.end; ++r) result[r] += dot(m.f32 + r * columns, vector.values, columns);
  } else {
    const float scale = m.scale * vector.row.scale;
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      const int64_t sum = dot(m.i8 + r * columns, vector.quantized, vector.row.zero_point, columns);
      result[r] += static_cast<float>(sum) * scale;
    }
  }
}

}  // namespace leadline::kernels
