// SPDX-License-Identifier: Apache-2.0
// BIDIRECTIONAL_SEQUENCE_LSTM: one cell reads the sequence forwards, another one backwards.
//
// The auxiliary input has two uses. With auxiliary weights both cells add it to their gates; without, it is what the
// backward cell reads instead of the input.
#include <algorithm>
#include <limits>

#include "ops/families.h"
#include "ops/lstm.h"
#include "ops/lstm_common.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace bidirectional_lstm {
namespace {

constexpr int kAuxInput = 39;
constexpr LstmLayout kForward{1, 5, 9, 12, 16, 17, 35, 36, -1, 40};
constexpr LstmLayout kBackward{18, 22, 26, 29, 33, 34, 37, 38, -1, 44};

LstmOptions options_of(const BidirectionalLstmAttributes& a) {
  return {a.activation, a.cell_clip, a.proj_clip, a.asymmetric_quantize_inputs};
}

struct Cells {
  LstmShape forward;
  LstmShape backward;
  bool aux = false;  // both cells read the auxiliary input
  bool backward_reads_aux = false;
};

Cells checked_cells(const OpContext& c) {
  const auto& a = c.attributes<BidirectionalLstmAttributes>();
  const Shape& in = c.input(0).shape;
  c.require_input_type(0, {DType::kFloat32});
  c.require(in.rank() == 3, "input has shape {}, expected 3 dimensions", in.to_string());
  c.require(c.output_count() == (a.merge_outputs ? 1 : 2), "there are {} outputs, expected {}", c.output_count(),
            a.merge_outputs ? 1 : 2);
  Cells cells;
  // Forget-gate weights are never absent where there are auxiliary weights at all.
  cells.aux = c.has_input(kForward.aux_weights + kForgetGate);
  int64_t aux_inputs = 0;
  if (c.has_input(kAuxInput)) {
    const Shape& aux = c.input(kAuxInput).shape;
    c.require_input_type(kAuxInput, {DType::kFloat32});
    c.require(aux.rank() == 3 && aux[0] == in[0] && aux[1] == in[1],
              "auxiliary input has shape {}, expected [{}, {}, n]", aux.to_string(), in[0], in[1]);
    cells.backward_reads_aux = !cells.aux;
    c.require(cells.aux || aux[2] == in[2], "auxiliary input has {} values per step, expected {}", aux[2], in[2]);
    if (cells.aux) aux_inputs = aux[2];
    c.require(!cells.aux || aux_inputs > 0, "auxiliary input is empty");
  } else {
    c.require(!cells.aux, "there are auxiliary weights without an auxiliary input");
  }
  const int64_t batch = in[a.time_major ? 1 : 0];
  cells.forward = check_lstm(c, kForward, options_of(a), batch, in[2], aux_inputs);
  cells.backward = check_lstm(c, kBackward, options_of(a), batch, in[2], aux_inputs);
  return cells;
}

void infer(InferContext& c) {
  const Cells cells = checked_cells(c);
  const Shape& in = c.input(0).shape;
  for (int i = 0; i < c.output_count(); ++i) c.require_output_type(i, {DType::kFloat32});
  const bool merged = c.attributes<BidirectionalLstmAttributes>().merge_outputs;
  c.set_output_shape(0, {in[0], in[1], cells.forward.outputs + (merged ? cells.backward.outputs : 0)});
  if (!merged) c.set_output_shape(1, {in[0], in[1], cells.backward.outputs});
}

LstmSequence sequence_of(const OpContext& c, const LstmShape& shape, int64_t output_width, bool backward) {
  const bool time_major = c.attributes<BidirectionalLstmAttributes>().time_major;
  LstmSequence q;
  q.steps = c.input(0).shape[time_major ? 0 : 1];
  q.backward = backward;
  q.rows_together = time_major;
  auto strides = [&](int64_t width, int64_t& row, int64_t& step) {
    row = time_major ? width : q.steps * width;
    step = time_major ? shape.batch * width : width;
  };
  strides(shape.inputs, q.input_row_stride, q.input_step_stride);
  strides(shape.aux_inputs, q.aux_row_stride, q.aux_step_stride);
  strides(output_width, q.output_row_stride, q.output_step_stride);
  return q;
}

std::unique_ptr<Kernel> prepare(PrepareContext& c) {
  const auto& a = c.attributes<BidirectionalLstmAttributes>();
  const Cells cells = checked_cells(c);
  const LstmOptions options = options_of(a);
  const bool merged = a.merge_outputs;
  const LstmSequence forward = sequence_of(c, cells.forward, c.output(0).shape[2], false);
  LstmSequence backward = sequence_of(c, cells.backward, c.output(merged ? 0 : 1).shape[2], true);
  backward.output_offset = merged ? cells.forward.outputs : 0;
  c.request_scratch(std::max(lstm_workspace_bytes(cells.forward), lstm_workspace_bytes(cells.backward)));
  return make_kernel([=](RunContext& run) {
    const TensorView* aux = cells.aux ? &run.input(kAuxInput) : nullptr;
    const TensorView& behind = run.input(cells.backward_reads_aux ? kAuxInput : 0);
    run_lstm(run, kForward, cells.forward, forward, options, {}, run.input(0), aux, run.output(0));
    run_lstm(run, kBackward, cells.backward, backward, options, {}, behind, aux, run.output(merged ? 0 : 1));
  });
}

}  // namespace
}  // namespace bidirectional_lstm

void register_bidirectional_lstm(Registry& registry) {
  using namespace bidirectional_lstm;
  registry.add({.id = op::kBidirectionalSequenceLstm,
                .max_version = 3,
                .min_inputs = 48,
                .max_inputs = 48,
                .required_inputs = 1,
                .min_outputs = 1,
                .max_outputs = 2,
                .options = builtin_options(69),
                .make_attributes = make_attributes<BidirectionalLstmAttributes>,
                .infer = infer,
                .prepare = prepare,
                .pure = false,
                .quantize = hybrid_rule({.hybrid = 3}, input_set({{1, 11}, 16, {18, 28}, 33, {40, 47}})),
                .types = "f32 hybrid"});
}

}  // namespace leadline::ops
