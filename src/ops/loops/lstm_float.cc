// SPDX-License-Identifier: Apache-2.0
#include "ops/loops/lstm_float.h"

#include <algorithm>
#include <cmath>

namespace leadline::ops {
namespace {

void add_peephole(const WeightMatrix& m, const float* cell_state, int64_t cells, float* result) {
  if (m.f32 != nullptr) {
    for_items(cells, 1, [&](int64_t i) { result[i] += m.f32[i] * cell_state[i]; });
  } else if (m.i8 != nullptr) {
    for_items(cells, 1, [&](int64_t i) { result[i] += m.scale * static_cast<float>(m.i8[i]) * cell_state[i]; });
  }
}

/// To mean 0 and standard deviation 1, then scaled by `weights`.
void normalize(const float* weights, int64_t count, float* values) {
  float sum = 0.0F;
  for_items(count, 4, [&](int64_t i) { sum += values[i]; });
  const float mean = sum / static_cast<float>(count);
  float squares = 0.0F;
  for_items(count, 4, [&](int64_t i) { squares += (values[i] - mean) * (values[i] - mean); });
  const float inverse = 1.0F / std::sqrt(squares / static_cast<float>(count) + 1e-8F);
  for_items(count, 1, [&](int64_t i) { values[i] = (values[i] - mean) * inverse * weights[i]; });
}

struct StepInputs {
  RowOperand input;
  RowOperand aux;
  RowOperand state;
};

/// The gate before its activation.
void compute_gate(const LstmCell& cell, const LstmGate& gate, const StepInputs& in, const float* cell_state,
                  float* result) {
  if (gate.norm == nullptr) {
    for_items(cell.cells, 1, [&](int64_t i) { result[i] = gate.bias[i]; });
  } else {
    for_items(cell.cells, 1, [&](int64_t i) { result[i] = 0.0F; });
  }
  multiply_add(gate.input, in.input, cell.cells, cell.inputs, result);
  if (gate.aux.present() && in.aux.values != nullptr) {
    multiply_add(gate.aux, in.aux, cell.cells, cell.aux_inputs, result);
  }
  multiply_add(gate.recurrent, in.state, cell.cells, cell.outputs, result);
  add_peephole(gate.peephole, cell_state, cell.cells, result);
  if (gate.norm != nullptr) {
    normalize(gate.norm, cell.cells, result);
    for_items(cell.cells, 1, [&](int64_t i) { result[i] += gate.bias[i]; });
  }
}

void clip(float limit, float* values, int64_t count) {
  if (!(limit > 0.0F)) return;
  for_items(count, 1, [&](int64_t i) { values[i] = std::clamp(values[i], -limit, limit); });
}

}  // namespace

int64_t lstm_scratch_bytes(int64_t inputs, int64_t aux_inputs, int64_t cells, int64_t outputs) {
  return 5 * cells * static_cast<int64_t>(sizeof(float)) + inputs + aux_inputs + outputs + cells;
}

void lstm_step(const LstmCell& cell, const float* input, const float* aux, float* output_state, float* cell_state,
               float* output, std::byte* scratch) {
  const int64_t n = cell.cells;
  auto* gates = reinterpret_cast<float*>(scratch);
  float* const input_gate = gates + kInputGate * n;
  float* const forget_gate = gates + kForgetGate * n;
  float* const cell_gate = gates + kCellGate * n;
  float* const output_gate = gates + kOutputGate * n;
  float* const hidden = gates + 4 * n;
  auto* bytes = reinterpret_cast<int8_t*>(gates + 5 * n);

  // Weights are all of one type; the output gate is always there.
  const bool hybrid = cell.gates[kOutputGate].input.i8 != nullptr;
  auto operand = [&](const float* values, int64_t count, int8_t* quantized) {
    return row_operand(values, count, hybrid, cell.asymmetric, quantized);
  };
  StepInputs in;
  in.input = operand(input, cell.inputs, bytes);
  in.aux = operand(aux, cell.aux_inputs, bytes + cell.inputs);
  in.state = operand(output_state, cell.outputs, bytes + cell.inputs + cell.aux_inputs);

  if (!cell.coupled()) {
    compute_gate(cell, cell.gates[kInputGate], in, cell_state, input_gate);
    logistic_cells(input_gate, n);
  }
  compute_gate(cell, cell.gates[kForgetGate], in, cell_state, forget_gate);
  logistic_cells(forget_gate, n);
  compute_gate(cell, cell.gates[kCellGate], in, cell_state, cell_gate);
  activate_cells(cell.activation, cell_gate, cell_gate, n);
  for_items(n, 2, [&](int64_t i) {
    const float weight = cell.coupled() ? 1.0F - forget_gate[i] : input_gate[i];
    cell_state[i] = forget_gate[i] * cell_state[i] + cell_gate[i] * weight;
  });
  clip(cell.cell_clip, cell_state, n);

  // The output gate's peephole looks at the new cell state.
  compute_gate(cell, cell.gates[kOutputGate], in, cell_state, output_gate);
  logistic_cells(output_gate, n);
  activate_cells(cell.activation, cell_state, hidden, n);
  for_items(n, 1, [&](int64_t i) { hidden[i] *= output_gate[i]; });

  if (cell.projection.present()) {
    const RowOperand h = operand(hidden, n, bytes + cell.inputs + cell.aux_inputs + cell.outputs);
    for_items(cell.outputs, 1,
              [&](int64_t i) { output_state[i] = cell.projection_bias != nullptr ? cell.projection_bias[i] : 0.0F; });
    multiply_add(cell.projection, h, cell.outputs, n, output_state);
    clip(cell.projection_clip, output_state, cell.outputs);
  } else {
    for_items(cell.outputs, 1, [&](int64_t i) { output_state[i] = hidden[i]; });
  }
  for_items(cell.outputs, 1, [&](int64_t i) { output[i] = output_state[i]; });
}

}  // namespace leadline::ops
