// SPDX-License-Identifier: Apache-2.0
// One step of a plain recurrent cell for one row: output = f(W input + V aux + R state + bias), and state = output.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/loops/recurrent.h"

namespace leadline::ops {

struct RnnCell {
  int64_t inputs = 0, aux_inputs = 0, units = 0;
  WeightMatrix input;      // [units, inputs]
  WeightMatrix aux;        // [units, aux_inputs]
  WeightMatrix recurrent;  // [units, units]
  const float* bias = nullptr;
  CellActivation activation = CellActivation::kNone;
  bool asymmetric = false;
};

/// Workspace of a step: only for int8 weights.
inline int64_t rnn_scratch_bytes(int64_t inputs, int64_t aux_inputs, int64_t units) {
  return inputs + aux_inputs + units;
}

/// `aux` may be null.
void rnn_step(const RnnCell& cell, const float* input, const float* aux, float* state, float* output,
              std::byte* scratch);

}  // namespace leadline::ops
