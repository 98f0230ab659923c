// SPDX-License-Identifier: Apache-2.0
// What the LSTM ops share: where their operands are, the checks on them, and the cells for the kernels.
#pragma once

#include <optional>

#include "ops/loops/lstm_float.h"
#include "ops/loops/lstm_integer.h"
#include "ops/op.h"

namespace leadline::ops {

/// Index of the first operand of each group; -1 where an op has no such group. Groups of four are the input, forget,
/// cell and output gate; the peephole has no cell gate.
struct LstmLayout {
  int input_weights = 1;
  int recurrent_weights = 5;
  int peephole = 9;
  int bias = 12;
  int projection = 16;
  int projection_bias = 17;
  int output_state = 18;
  int cell_state = 19;
  int norm = 20;
  int aux_weights = -1;
};

/// LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM.
inline constexpr LstmLayout kLstmLayout{};
/// Of that layout: weights of the input, of the last output, of the peepholes, and of the projection.
inline constexpr uint64_t kLstmWeightInputs = input_set({{1, 8}, {9, 11}, 16});

enum class LstmKind { kFloat, kHybrid, kInteger };

struct LstmShape {
  LstmKind kind = LstmKind::kFloat;
  int64_t batch = 0, inputs = 0, aux_inputs = 0, cells = 0, outputs = 0;
};

struct LstmOptions {
  ir::Activation activation = ir::Activation::kNone;
  float cell_clip = 0.0F;
  float projection_clip = 0.0F;
  bool asymmetric = false;
};

/// Checks every operand of a cell that reads `batch` rows of `inputs` values of the type of input 0 (and `aux_inputs`
/// values more), and returns its sizes. Throws when anything does not fit.
LstmShape check_lstm(const OpContext& c, const LstmLayout& layout, const LstmOptions& options, int64_t batch,
                     int64_t inputs, int64_t aux_inputs = 0);

/// The float or hybrid cell over the operands of a run.
LstmCell lstm_cell(const RunContext& c, const LstmLayout& layout, const LstmShape& shape, const LstmOptions& options);

/// Everything of an integer cell but the pointers; set_pointers adds those.
IntegerLstmCell integer_lstm_cell(const OpContext& c, const LstmLayout& layout, const LstmShape& shape,
                                  const LstmOptions& options);
void set_pointers(const RunContext& c, const LstmLayout& layout, IntegerLstmCell& cell);

/// Bytes of workspace for one step of a cell.
int64_t lstm_workspace_bytes(const LstmShape& shape);

/// A sequence for one direction of a cell: rows lie `row_stride` elements apart, steps `step_stride`.
struct LstmSequence {
  int64_t steps = 1;
  int64_t input_row_stride = 0, input_step_stride = 0;
  int64_t aux_row_stride = 0, aux_step_stride = 0;
  int64_t output_row_stride = 0, output_step_stride = 0;
  int64_t output_offset = 0;
  bool backward = false;
  bool rows_together = true;  // TFLite computes the rows of a batch in one call (it matters to add_peephole)
};

/// Runs a whole sequence. `aux` may be null; integer cells have none.
void run_lstm(RunContext& c, const LstmLayout& layout, const LstmShape& shape, const LstmSequence& sequence,
              const LstmOptions& options, const IntegerLstmCell& integer_cell, const TensorView& input,
              const TensorView* aux, const TensorView& output);

}  // namespace leadline::ops
