// SPDX-License-Identifier: Apache-2.0
// RNN UNIDIRECTIONAL_SEQUENCE_RNN BIDIRECTIONAL_SEQUENCE_RNN: plain recurrent cells over float vectors, with float or
// int8 weights. The hidden states are variables that outlive the run.
#include "ops/rnn.h"

#include <algorithm>
#include <limits>

#include "ops/families.h"
#include "ops/loops/rnn.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

/// First operand of a cell: input weights, recurrent weights, biases, hidden state. `aux` is its auxiliary weights.
struct CellLayout {
  int first = 1;
  int aux = -1;
};

constexpr CellLayout kSingle{1, -1};
constexpr CellLayout kForward{1, 10};
constexpr CellLayout kBackward{5, 11};
constexpr int kAuxInput = 9;

/// One direction: sizes, and where rows and steps lie.
struct Pass {
  CellLayout layout;
  int64_t batch = 0, steps = 1, inputs = 0, aux_inputs = 0, units = 0;
  int64_t input_row = 0, input_step = 0, aux_row = 0, aux_step = 0, output_row = 0, output_step = 0, output_offset = 0;
  bool backward = false;
  ir::Activation activation = ir::Activation::kNone;
  bool asymmetric = false;

  void set_strides(bool time_major, int64_t output_width) {
    auto strides = [&](int64_t width, int64_t& row, int64_t& step) {
      row = time_major ? width : steps * width;
      step = time_major ? batch * width : width;
    };
    strides(inputs, input_row, input_step);
    strides(aux_inputs, aux_row, aux_step);
    strides(output_width, output_row, output_step);
  }
};

void check_weights(const OpContext& c, int i, const Shape& shape, DType type, const char* what) {
  c.require(c.has_input(i), "{} are missing", what);
  const Operand& o = c.input(i);
  if (o.dtype() != type) {
    c.fail(ErrorCode::kUnsupported, "{} '{}' have type {}, expected {}", what, o.value->name, dtype_name(o.dtype()),
           dtype_name(type));
  }
  c.require(o.shape == shape, "{} '{}' have shape {}, expected {}", what, o.value->name, o.shape.to_string(),
            shape.to_string());
  if (type != DType::kFloat32) c.require_quantized(o, what);
}

/// Checks the operands of one cell and returns its sizes.
Pass checked_pass(const OpContext& c, CellLayout layout, int64_t batch, int64_t inputs, int64_t aux_inputs) {
  c.require_input_type(0, {DType::kFloat32});
  const int weights = layout.first;
  c.require(c.has_input(weights), "input weights are missing");
  c.require_input_type(weights, {DType::kFloat32, DType::kInt8, DType::kUInt8});  // old files say uint8 for int8
  const Shape& shape = c.input(weights).shape;
  c.require(shape.rank() == 2, "input weights have shape {}, expected 2 dimensions", shape.to_string());
  Pass p;
  p.layout = layout;
  p.batch = batch;
  p.inputs = inputs;
  p.aux_inputs = aux_inputs;
  p.units = shape[0];
  const int64_t largest = std::max({batch, inputs, aux_inputs, p.units});
  c.require(largest <= std::numeric_limits<int32_t>::max(), "a dimension is {}, which is too large", largest);
  const DType type = c.input(weights).dtype();
  check_weights(c, weights, {p.units, inputs}, type, "input weights");
  check_weights(c, layout.first + 1, {p.units, p.units}, type, "recurrent weights");
  check_weights(c, layout.first + 2, {p.units}, DType::kFloat32, "biases");
  if (aux_inputs > 0) check_weights(c, layout.aux, {p.units, aux_inputs}, type, "auxiliary weights");
  const int state = layout.first + 3;
  check_weights(c, state, {batch, p.units}, DType::kFloat32, "hidden states");
  c.require(c.input(state).value->variable, "the hidden state '{}' is not a variable tensor",
            c.input(state).value->name);
  return p;
}

int64_t scratch_bytes(const Pass& p) { return rnn_scratch_bytes(p.inputs, p.aux_inputs, p.units); }

void run_pass(const RunContext& c, const Pass& p, const TensorView& input, const TensorView* aux,
              const TensorView& output) {
  auto matrix = [&](int i) {
    kernels::WeightMatrix m;
    const TensorView& view = c.input(i);
    if (view.dtype == DType::kFloat32) {
      m.f32 = view.as<float>();
    } else {
      m.i8 = view.as<int8_t>();
      m.scale = view.quantization->scale0();
    }
    return m;
  };
  RnnCell cell;
  cell.inputs = p.inputs;
  cell.aux_inputs = p.aux_inputs;
  cell.units = p.units;
  cell.input = matrix(p.layout.first);
  if (aux != nullptr) cell.aux = matrix(p.layout.aux);
  cell.recurrent = matrix(p.layout.first + 1);
  cell.bias = c.input(p.layout.first + 2).as<float>();
  cell.activation = static_cast<kernels::CellActivation>(p.activation);
  cell.asymmetric = p.asymmetric;
  float* state = c.input(p.layout.first + 3).mutable_as<float>();
  const double cost = static_cast<double>(p.units) * static_cast<double>(p.inputs + p.aux_inputs + p.units + 16) + 256;
  for_items(p.batch * p.steps, cost, [&](int64_t i) {
    const int64_t b = i / p.steps;
    const int64_t s = i % p.steps;
    const int64_t step = p.backward ? p.steps - 1 - s : s;
    rnn_step(cell, input.as<float>() + b * p.input_row + step * p.input_step,
             aux != nullptr ? aux->as<float>() + b * p.aux_row + step * p.aux_step : nullptr, state + b * p.units,
             output.mutable_as<float>() + b * p.output_row + step * p.output_step + p.output_offset, c.scratch());
  });
}

Pass checked_step(const OpContext& c) {
  const Shape& in = c.input(0).shape;
  c.require(in.rank() == 2, "input has shape {}, expected 2 dimensions", in.to_string());
  Pass p = checked_pass(c, kSingle, in[0], in[1], 0);
  const auto& a = c.attributes<RnnAttributes>();
  p.activation = a.activation;
  p.asymmetric = a.asymmetric_quantize_inputs;
  p.set_strides(true, p.units);
  return p;
}

Pass checked_sequence(const OpContext& c) {
  const Shape& in = c.input(0).shape;
  const auto& a = c.attributes<SequenceRnnAttributes>();
  c.require(in.rank() == 3, "input has shape {}, expected 3 dimensions", in.to_string());
  Pass p = checked_pass(c, kSingle, in[a.time_major ? 1 : 0], in[2], 0);
  p.steps = in[a.time_major ? 0 : 1];
  p.activation = a.activation;
  p.asymmetric = a.asymmetric_quantize_inputs;
  p.set_strides(a.time_major, p.units);
  return p;
}

template <auto checked>
void infer_single(InferContext& c) {
  const Pass p = checked(c);
  c.require_output_type(0, {DType::kFloat32});
  Shape out = c.input(0).shape;
  out.set(out.rank() - 1, p.units);
  c.set_output_shape(0, out);
}

template <auto checked>
std::unique_ptr<Kernel> prepare_single(PrepareContext& c) {
  const Pass p = checked(c);
  c.request_scratch(scratch_bytes(p));
  return make_kernel([p](RunContext& run) { run_pass(run, p, run.input(0), nullptr, run.output(0)); });
}

struct Passes {
  Pass forward;
  Pass backward;
  bool aux = false;                 // both cells read the auxiliary input
  bool backward_reads_aux = false;  // the backward cell reads it instead of the input
  int64_t repeats = 1;
};

Passes checked_passes(const OpContext& c) {
  const auto& a = c.attributes<BidirectionalRnnAttributes>();
  const Shape& in = c.input(0).shape;
  c.require(in.rank() == 3, "input has shape {}, expected 3 dimensions", in.to_string());
  c.require(c.output_count() == (a.merge_outputs ? 1 : 2), "there are {} outputs, expected {}", c.output_count(),
            a.merge_outputs ? 1 : 2);
  Passes passes;
  passes.aux = c.has_input(kForward.aux);
  c.require(passes.aux == c.has_input(kBackward.aux), "auxiliary weights are given for one direction only");
  c.require(!passes.aux || c.has_input(kAuxInput), "there are auxiliary weights without an auxiliary input");
  int64_t aux_inputs = 0;
  if (c.has_input(kAuxInput)) {
    const Shape& aux = c.input(kAuxInput).shape;
    c.require_input_type(kAuxInput, {DType::kFloat32});
    c.require(aux.rank() == 3 && aux[0] == in[0] && aux[1] == in[1] && (passes.aux ? aux[2] > 0 : aux[2] == in[2]),
              "auxiliary input has shape {}, which does not fit the input's {}", aux.to_string(), in.to_string());
    if (passes.aux) aux_inputs = aux[2];
    // TFLite reads the input in this case when the batch comes first.
    passes.backward_reads_aux = !passes.aux && a.time_major;
  }
  const int64_t batch = in[a.time_major ? 1 : 0];
  passes.forward = checked_pass(c, kForward, batch, in[2], aux_inputs);
  passes.backward = checked_pass(c, kBackward, batch, in[2], aux_inputs);
  passes.backward.backward = true;
  const int64_t both = passes.forward.units + passes.backward.units;
  for (Pass* p : {&passes.forward, &passes.backward}) {
    p->steps = in[a.time_major ? 0 : 1];
    p->activation = a.activation;
    p->asymmetric = a.asymmetric_quantize_inputs;
    p->set_strides(a.time_major, a.merge_outputs ? both : p->units);
  }
  if (a.merge_outputs) passes.backward.output_offset = passes.forward.units;
  // With int8 weights and time first, TFLite reads the whole sequence as many times as it has steps, the states going
  // on from one time to the next. Results are to be the same, so this does, too.
  if (a.time_major && c.input(kForward.first).dtype() != DType::kFloat32) passes.repeats = passes.forward.steps;
  return passes;
}

void infer_bidirectional(InferContext& c) {
  const Passes passes = checked_passes(c);
  const Shape& in = c.input(0).shape;
  for (int i = 0; i < c.output_count(); ++i) c.require_output_type(i, {DType::kFloat32});
  const bool merged = c.output_count() == 1;
  c.set_output_shape(0, {in[0], in[1], passes.forward.units + (merged ? passes.backward.units : 0)});
  if (!merged) c.set_output_shape(1, {in[0], in[1], passes.backward.units});
}

std::unique_ptr<Kernel> prepare_bidirectional(PrepareContext& c) {
  const Passes passes = checked_passes(c);
  c.request_scratch(std::max(scratch_bytes(passes.forward), scratch_bytes(passes.backward)));
  return make_kernel([passes](RunContext& run) {
    const TensorView* aux = passes.aux ? &run.input(kAuxInput) : nullptr;
    const TensorView& behind = run.input(passes.backward_reads_aux ? kAuxInput : 0);
    for (int64_t i = 0; i < passes.repeats; ++i) {
      run_pass(run, passes.forward, run.input(0), aux, run.output(0));
      run_pass(run, passes.backward, behind, aux, run.output(run.output_count() - 1));
    }
  });
}

}  // namespace

void register_rnn(Registry& registry) {
  registry.add({.id = op::kRnn,
                .max_version = 3,
                .min_inputs = 5,
                .max_inputs = 5,
                .required_inputs = 5,
                .options = builtin_options(7),
                .make_attributes = make_attributes<RnnAttributes>,
                .infer = infer_single<checked_step>,
                .prepare = prepare_single<checked_step>,
                .pure = false,
                .quantize = hybrid_rule({.hybrid = 3}, input_set({1, 2})),
                .types = "f32 hybrid"});
  registry.add({.id = op::kUnidirectionalSequenceRnn,
                .max_version = 3,
                .min_inputs = 5,
                .max_inputs = 5,
                .required_inputs = 5,
                .options = builtin_options(31),
                .make_attributes = make_attributes<SequenceRnnAttributes>,
                .infer = infer_single<checked_sequence>,
                .prepare = prepare_single<checked_sequence>,
                .pure = false,
                .quantize = hybrid_rule({.hybrid = 3}, input_set({1, 2})),
                .types = "f32 hybrid"});
  registry.add({.id = op::kBidirectionalSequenceRnn,
                .max_version = 3,
                .min_inputs = 12,
                .max_inputs = 12,
                .required_inputs = 9,
                .min_outputs = 1,
                .max_outputs = 2,
                .options = builtin_options(70),
                .make_attributes = make_attributes<BidirectionalRnnAttributes>,
                .infer = infer_bidirectional,
                .prepare = prepare_bidirectional,
                .pure = false,
                .quantize = hybrid_rule({.hybrid = 3}, input_set({1, 2, 5, 6, 10, 11})),
                .types = "f32 hybrid"});
}

}  // namespace leadline::ops
