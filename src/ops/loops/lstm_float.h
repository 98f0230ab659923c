// SPDX-License-Identifier: Apache-2.0
// One step of an LSTM cell in floats, with float weights or int8 weights ("hybrid": the vectors are quantized on the
// way in). Rows of a batch do not meet, so a step is for one row.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/loops/recurrent.h"

namespace leadline::ops {

struct LstmGate {
  WeightMatrix input;           // [cells, inputs]
  WeightMatrix aux;             // [cells, aux_inputs]
  WeightMatrix recurrent;       // [cells, outputs]
  WeightMatrix peephole;        // diagonal [cells]; i8 has the values as integers
  const float* bias = nullptr;  // [cells]
  const float* norm = nullptr;  // [cells]: layer normalization before the bias
};

enum LstmGateIndex { kInputGate = 0, kForgetGate = 1, kCellGate = 2, kOutputGate = 3 };

struct LstmCell {
  int64_t inputs = 0, aux_inputs = 0, cells = 0, outputs = 0;
  std::array<LstmGate, 4> gates;  // without an input gate (CIFG) it is 1 - forget
  WeightMatrix projection;        // [outputs, cells]
  const float* projection_bias = nullptr;
  CellActivation activation = CellActivation::kTanh;
  float cell_clip = 0.0F;        // 0: none
  float projection_clip = 0.0F;  // 0: none
  bool asymmetric = false;       // how hybrid vectors are quantized

  bool coupled() const { return !gates[kInputGate].input.present(); }
};

/// Workspace of a step, aligned as float.
int64_t lstm_scratch_bytes(int64_t inputs, int64_t aux_inputs, int64_t cells, int64_t outputs);

/// Reads `input` (and `aux`, which may be null), updates both states and writes `output` (outputs values).
void lstm_step(const LstmCell& cell, const float* input, const float* aux, float* output_state, float* cell_state,
               float* output, std::byte* scratch);

}  // namespace leadline::ops
