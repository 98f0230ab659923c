// SPDX-License-Identifier: Apache-2.0
// One step of a fully quantized LSTM cell: int8 vectors and weights, int16 gates and cell state, TFLite's rounding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/quant/fixed_point.h"
#include "ops/loops/lstm_float.h"

namespace leadline::ops {

/// Borrowed pointers. The multipliers take sums of products to the gate's own scale: Q3.12 or, before a layer
/// normalization, that of the model.
struct IntegerLstmGate {
  const int8_t* input = nullptr;      // [cells, inputs]
  const int8_t* recurrent = nullptr;  // [cells, outputs]
  const int16_t* peephole = nullptr;  // [cells]
  const int32_t* bias = nullptr;      // [cells]
  const int16_t* norm = nullptr;      // [cells]
  kernels::Multiplier input_scale;
  kernels::Multiplier recurrent_scale;
  kernels::Multiplier peephole_scale;
  kernels::Multiplier norm_scale;  // already raised by 12 bits, to Q3.12
  int32_t variance_guard = 1;
};

struct IntegerLstmCell {
  int64_t inputs = 0, cells = 0, outputs = 0;
  std::array<IntegerLstmGate, 4> gates;  // without an input gate (CIFG) it is 1 - forget
  const int8_t* projection = nullptr;    // [outputs, cells]
  const int32_t* projection_bias = nullptr;
  kernels::Multiplier projection_scale;
  kernels::Multiplier hidden_scale;
  int32_t input_zero_point = 0;
  int32_t state_zero_point = 0;
  int32_t hidden_zero_point = 0;
  int cell_exponent = -11;     // the cell state's scale is 2^cell_exponent, -30 to -9
  int16_t cell_clip = 0;       // 0: none
  int8_t projection_clip = 0;  // 0: none

  bool coupled() const { return gates[kInputGate].input == nullptr; }
};

/// Workspace of a step.
int64_t integer_lstm_scratch_bytes(int64_t cells);

/// Which row of how many that TFLite computes together.
struct LstmRow {
  int64_t index = 0;
  int64_t count = 1;
};

/// Reads `input`, updates both states of this row and writes `output`.
void integer_lstm_step(const IntegerLstmCell& cell, LstmRow row, const int8_t* input, int8_t* output_state,
                       int16_t* cell_state, int8_t* output, std::byte* scratch);

}  // namespace leadline::ops
