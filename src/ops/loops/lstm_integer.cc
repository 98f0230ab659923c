// SPDX-License-Identifier: Apache-2.0
#include "ops/loops/lstm_integer.h"

#include <algorithm>
#include <cmath>

#include "kernels/quant/fixed_math.h"

namespace leadline::ops {
namespace {

using kernels::Multiplier;
using kernels::multiply;
using kernels::saturate_i32;

int16_t clamp16(int64_t value) { return static_cast<int16_t>(std::clamp<int64_t>(value, -32768, 32767)); }
int8_t clamp8(int64_t value) { return static_cast<int8_t>(std::clamp<int64_t>(value, -128, 127)); }

/// gate[r] += scaled(bias[r] + row r times (vector - zero point)), saturating.
void multiply_add(const int8_t* matrix, const int8_t* vector, int32_t zero_point, const int32_t* bias, Multiplier scale,
                  int64_t rows, int64_t columns, int16_t* gate) {
  multiply_rows(matrix, vector, zero_point, rows, columns, [&](int64_t r, int64_t product) {
    const int64_t sum = product + (bias != nullptr ? bias[r] : 0);
    gate[r] = clamp16(int64_t{multiply(saturate_i32(sum), scale)} + gate[r]);
  });
}

/// TFLite walks over a batch of cell states in steps of `outputs`, not `cells`. With a projection that makes the
/// vectors shorter, the last states of the batch have no peephole then; the same here.
void add_peephole_i16(const IntegerLstmCell& cell, const IntegerLstmGate& gate, LstmRow row, const int16_t* cell_state,
                      int16_t* result) {
  const bool shorter = cell.outputs < cell.cells;
  for_items(cell.cells, 8, [&](int64_t i) {
    int64_t weight = i;
    if (shorter) {
      const int64_t position = row.index * cell.cells + i;
      if (position >= row.count * cell.outputs) return;
      weight = position % cell.outputs;
    }
    const int32_t product = gate.peephole[weight] * cell_state[i];
    result[i] = clamp16(int64_t{multiply(product, gate.peephole_scale)} + result[i]);
  });
}

void normalize_i16(const IntegerLstmGate& gate, int64_t count, int16_t* values) {
  int64_t sum = 0;
  int64_t squares = 0;
  for_items(count, 1, [&](int64_t i) {
    sum += values[i];
    squares += int32_t{values[i]} * values[i];
  });
  // Ten more bits for the mean, twenty for the variance.
  const auto mean = static_cast<int32_t>(sum * 1024 / count);
  const int64_t variance = (squares * ((1 << 20) / count) - int64_t{mean} * mean) / (1 << 20);
  const int32_t guarded = variance < 1 ? gate.variance_guard : saturate_i32(variance);
  const Multiplier inverse = kernels::inverse_sqrt_multiplier(guarded);
  for_items(count, 16, [&](int64_t i) {
    const int64_t scaled = int64_t{multiply(1024 * values[i] - mean, inverse)} * gate.norm[i] + gate.bias[i];
    const int64_t rounded = (scaled > 0 ? scaled + 512 : scaled - 512) / 1024;
    values[i] = clamp16(multiply(saturate_i32(rounded), gate.norm_scale));
  });
}

/// The gate before its activation.
void compute_integer_gate(const IntegerLstmCell& cell, const IntegerLstmGate& gate, LstmRow row, const int8_t* input,
                          const int8_t* output_state, const int16_t* cell_state, int16_t* result) {
  for_items(cell.cells, 1, [&](int64_t i) { result[i] = 0; });
  const int32_t* bias = gate.norm == nullptr ? gate.bias : nullptr;
  multiply_add(gate.input, input, cell.input_zero_point, bias, gate.input_scale, cell.cells, cell.inputs, result);
  multiply_add(gate.recurrent, output_state, cell.state_zero_point, nullptr, gate.recurrent_scale, cell.cells,
               cell.outputs, result);
  if (gate.peephole != nullptr) add_peephole_i16(cell, gate, row, cell_state, result);
  if (gate.norm != nullptr) normalize_i16(gate, cell.cells, result);
}

void logistic(int16_t* values, int64_t count) {
  for_items(count, 32, [&](int64_t i) { values[i] = kernels::logistic_q15(values[i]); });
}

/// LiteRT's tanh has no form for cell states with a smaller scale: it leaves what its workspace held in the result's
/// place. Converters write such scales where samples made small cell states.
constexpr int kLeastTanhExponent = -15;

/// tanh of x * 2^exponent in Q0.15.
int16_t tanh_of_cell(int16_t x, int exponent) {
  if (exponent >= kLeastTanhExponent) return kernels::tanh_q15(x, 15 + exponent);
  return static_cast<int16_t>(std::lround(std::tanh(std::ldexp(static_cast<double>(x), exponent)) * 32767.0));
}

}  // namespace

int64_t integer_lstm_scratch_bytes(int64_t cells) { return cells * static_cast<int64_t>(4 * sizeof(int16_t) + 1); }

void integer_lstm_step(const IntegerLstmCell& cell, LstmRow row, const int8_t* input, int8_t* output_state,
                       int16_t* cell_state, int8_t* output, std::byte* scratch) {
  const int64_t n = cell.cells;
  auto* gates = reinterpret_cast<int16_t*>(scratch);
  int16_t* const input_gate = gates + kInputGate * n;
  int16_t* const forget_gate = gates + kForgetGate * n;
  int16_t* const cell_gate = gates + kCellGate * n;
  int16_t* const output_gate = gates + kOutputGate * n;
  auto* const hidden = reinterpret_cast<int8_t*>(gates + 4 * n);

  if (!cell.coupled()) {
    compute_integer_gate(cell, cell.gates[kInputGate], row, input, output_state, cell_state, input_gate);
    logistic(input_gate, n);
  }
  compute_integer_gate(cell, cell.gates[kForgetGate], row, input, output_state, cell_state, forget_gate);
  logistic(forget_gate, n);
  compute_integer_gate(cell, cell.gates[kCellGate], row, input, output_state, cell_state, cell_gate);
  for_items(n, 48, [&](int64_t i) {
    const int16_t update = kernels::tanh_q15(cell_gate[i], 3);
    const int32_t weight = cell.coupled() ? 32767 - forget_gate[i] : input_gate[i];
    const auto kept = static_cast<int16_t>(kernels::rounding_divide_by_pot(forget_gate[i] * cell_state[i], 15));
    const int32_t change = kernels::rounding_divide_by_pot(weight * update, 30 + cell.cell_exponent);
    const int16_t added = cell.cell_exponent < kLeastTanhExponent ? clamp16(change) : static_cast<int16_t>(change);
    cell_state[i] = clamp16(kept + added);
    if (cell.cell_clip > 0) {
      cell_state[i] = std::clamp(cell_state[i], static_cast<int16_t>(-cell.cell_clip), cell.cell_clip);
    }
  });

  compute_integer_gate(cell, cell.gates[kOutputGate], row, input, output_state, cell_state, output_gate);
  logistic(output_gate, n);
  const bool projected = cell.projection != nullptr;
  // The projection takes the zero point off again, so its sign does not matter as long as both agree.
  const int32_t hidden_zero = projected ? -cell.hidden_zero_point : cell.hidden_zero_point;
  int8_t* const target = projected ? hidden : output_state;
  for_items(n, 48, [&](int64_t i) {
    const int32_t product = output_gate[i] * tanh_of_cell(cell_state[i], cell.cell_exponent);
    target[i] = clamp8(int64_t{multiply(product, cell.hidden_scale)} + hidden_zero);
  });
  if (projected) {
    multiply_rows(cell.projection, hidden, hidden_zero, cell.outputs, n, [&](int64_t r, int64_t product) {
      const int64_t sum = product + (cell.projection_bias != nullptr ? cell.projection_bias[r] : 0);
      int8_t value = clamp8(int64_t{multiply(saturate_i32(sum), cell.projection_scale)} + cell.state_zero_point);
      if (cell.projection_clip > 0) {
        value = std::clamp(value, static_cast<int8_t>(-cell.projection_clip), cell.projection_clip);
      }
      output_state[r] = value;
    });
  }
  for_items(cell.outputs, 1, [&](int64_t i) { output[i] = output_state[i]; });
}

}  // namespace leadline::ops
