// SPDX-License-Identifier: Apache-2.0
// UNIDIRECTIONAL_SEQUENCE_LSTM: an LSTM cell over a whole sequence; its states are variables that outlive the run.
#include "ops/sequence_lstm.h"

#include "ops/families.h"
#include "ops/lstm_common.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

LstmOptions options_of(const SequenceLstmAttributes& a) {
  return {a.activation, a.cell_clip, a.proj_clip, a.asymmetric_quantize_inputs};
}

LstmShape checked_shape(const OpContext& c) {
  const Shape& in = c.input(0).shape;
  c.require(c.input_count() == 20 || c.input_count() == 24, "there are {} inputs, expected 20 or 24", c.input_count());
  c.require(in.rank() == 3, "input has shape {}, expected 3 dimensions", in.to_string());
  const auto& a = c.attributes<SequenceLstmAttributes>();
  return check_lstm(c, kLstmLayout, options_of(a), in[a.time_major ? 1 : 0], in[2]);
}

void infer_sequence_lstm(InferContext& c) {
  const LstmShape shape = checked_shape(c);
  c.require_output_type(0, {c.input(0).dtype()});
  const Shape& in = c.input(0).shape;
  c.set_output_shape(0, {in[0], in[1], shape.outputs});
}

std::unique_ptr<Kernel> prepare_sequence_lstm(PrepareContext& c) {
  const auto& a = c.attributes<SequenceLstmAttributes>();
  const LstmShape shape = checked_shape(c);
  const LstmOptions options = options_of(a);
  c.request_scratch(lstm_workspace_bytes(shape));
  LstmSequence q;
  q.steps = c.input(0).shape[a.time_major ? 0 : 1];
  q.input_row_stride = a.time_major ? shape.inputs : q.steps * shape.inputs;
  q.input_step_stride = a.time_major ? shape.batch * shape.inputs : shape.inputs;
  q.output_row_stride = a.time_major ? shape.outputs : q.steps * shape.outputs;
  q.output_step_stride = a.time_major ? shape.batch * shape.outputs : shape.outputs;
  q.rows_together = a.time_major;
  return make_kernel([shape, q, options, cell = integer_lstm_cell(c, kLstmLayout, shape, options)](RunContext& run) {
    run_lstm(run, kLstmLayout, shape, q, options, cell, run.input(0), nullptr, run.output(0));
  });
}

}  // namespace

void register_sequence_lstm(Registry& registry) {
  registry.add({.id = op::kUnidirectionalSequenceLstm,
                .max_version = 4,
                .min_inputs = 20,
                .max_inputs = 24,
                .required_inputs = 1,
                .options = builtin_options(71),
                .make_attributes = make_attributes<SequenceLstmAttributes>,
                .infer = infer_sequence_lstm,
                .prepare = prepare_sequence_lstm,
                .pure = false,
                .quantize = hybrid_rule({.int8 = 1, .hybrid = 3}, kLstmWeightInputs),
                .types = "f32 i8x8_16 hybrid"});
}

}  // namespace leadline::ops
