// SPDX-License-Identifier: Apache-2.0
#include "ops/loops/rnn.h"

namespace leadline::ops {

void rnn_step(const RnnCell& cell, const float* input, const float* aux, float* state, float* output,
              std::byte* scratch) {
  auto* bytes = reinterpret_cast<int8_t*>(scratch);
  const bool hybrid = cell.input.i8 != nullptr;
  for_items(cell.units, 1, [&](int64_t i) { output[i] = cell.bias[i]; });
  multiply_add(cell.input, row_operand(input, cell.inputs, hybrid, cell.asymmetric, bytes), cell.units, cell.inputs,
               output);
  bytes += cell.inputs;
  if (aux != nullptr && cell.aux.present()) {
    multiply_add(cell.aux, row_operand(aux, cell.aux_inputs, hybrid, cell.asymmetric, bytes), cell.units,
                 cell.aux_inputs, output);
  }
  bytes += cell.aux_inputs;
  multiply_add(cell.recurrent, row_operand(state, cell.units, hybrid, cell.asymmetric, bytes), cell.units, cell.units,
               output);
  activate_cells(cell.activation, output, output, cell.units);
  for_items(cell.units, 1, [&](int64_t i) { state[i] = output[i]; });
}

}  // namespace leadline::ops
