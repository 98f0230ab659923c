// SPDX-License-Identifier: Apache-2.0
// LSTM layers as UNIDIRECTIONAL_SEQUENCE_LSTM, the op that TensorFlow makes of them.
//
// The op keeps its states in variables from run to run, and in TensorFlow's files they have the batch of the converter.
// Keras's layers begin every call at zero, with any batch. So a node sets each variable to zeros at the beginning of
// every run, with the batch of the input: zeros times a value of each row. Zeros from a constant would not do, because
// LiteRT computes those once, when memory is allocated.
#include "import/keras/importer.h"
#include "import/keras/recurrent.h"
#include "import/keras/weights.h"
#include "ops/sequence_lstm.h"
#include "ops/slice.h"

namespace leadline::keras {
namespace {

constexpr int kGates = 4;  // input, forget, candidate, output: Keras and the op have the same order
constexpr int kInputs = 20;
constexpr int kInputWeights = 1;
constexpr int kRecurrentWeights = 5;
constexpr int kBias = 12;
constexpr int kOutputState = 18;
constexpr int kCellState = 19;

bool is_function(const Config& config, std::string_view key, std::string_view name) {
  const auto function = config.find(key);
  return function && function->is_text() && function->text() == name;
}

/// Columns of gate `gate` of a kernel [rows, 4 * units] as weights [units, rows].
int gate_weights(Call& call, size_t index, const char* name, int64_t rows, int64_t units, int gate) {
  const Weight& whole = call.weight(index, name, {rows, kGates * units});
  require(whole.dtype == DType::kFloat32, ErrorCode::kUnsupported, "the {} is {}; save it as float32", name,
          dtype_name(whole.dtype));
  const int64_t begin[] = {0, gate * units};
  const int order[] = {1, 0};
  const ir::Source columns = ir::sliced_source(whole.source, whole.shape, begin, Shape{rows, units}, 4);
  return call.e.builder().constant(call.e.name(name), DType::kFloat32, {units, rows},
                                   ir::transposed_source(columns, Shape{rows, units}, order, 4));
}

/// The first value of each row of `sequence` [batch, time, features]: [batch, 1].
int first_values(Emitter& e, int sequence) {
  ops::StridedSliceAttributes attributes;
  attributes.begin_mask = 1;
  attributes.end_mask = 1;
  attributes.shrink_axis_mask = 2;
  return e.builder().node("STRIDED_SLICE", {sequence, e.ints({0, 0, 0}), e.ints({0, 1, 1}), e.ints({1, 1, 1})},
                          e.name("first"), attributes);
}

}  // namespace

bool fuses(Call& call, const Layer& cell) {
  return !cell.foreign && (cell.class_name == "LSTM" || cell.class_name == "LSTMCell") && call.inputs.size() == 1 &&
         call.mask() < 0 && !call.config.boolean("return_state", false) &&
         is_function(cell.config, "activation", "tanh") && is_function(cell.config, "recurrent_activation", "sigmoid");
}

int fused_lstm(Call& call, const Layer& cell, int sequence) {
  Emitter& e = call.e;
  const int64_t units = cell.config.integer("units");
  require(units > 0 && units < (1 << 24), ErrorCode::kInvalidModel, "the number of units is {}, expected 1 to 2^24",
          units);
  const int64_t features = e.dims(sequence).back();
  const Arguments none;
  Call weights(call.importer, e, cell, none);
  std::vector<float> biases(static_cast<size_t>(kGates * units));
  if (cell.config.boolean("use_bias", true)) biases = weights.values(2, "bias", {kGates * units});

  ops::NodeSpec spec;
  spec.op = "UNIDIRECTIONAL_SEQUENCE_LSTM";
  spec.inputs.assign(kInputs, ir::kAbsent);
  spec.inputs[0] = sequence;
  const auto operand = [&spec](int i) -> int& { return spec.inputs[static_cast<size_t>(i)]; };
  for (int gate = 0; gate < kGates; ++gate) {
    operand(kInputWeights + gate) = gate_weights(weights, 0, "kernel", features, units, gate);
    operand(kRecurrentWeights + gate) = gate_weights(weights, 1, "recurrent_kernel", units, units, gate);
    const auto first = biases.begin() + static_cast<std::ptrdiff_t>(gate * units);
    const std::vector<float> bias(first, first + static_cast<std::ptrdiff_t>(units));
    operand(kBias + gate) = e.builder().constant(e.name("bias"), DType::kFloat32, {units}, bias);
  }
  const int rows = first_values(e, sequence);
  const int zeros = e.floats(std::vector<float>(static_cast<size_t>(units)));
  operand(kOutputState) = e.builder().node("MUL", {rows, zeros}, e.name("output_state"));
  operand(kCellState) = e.builder().node("MUL", {rows, zeros}, e.name("cell_state"));
  auto attributes = std::make_shared<ops::SequenceLstmAttributes>();
  attributes->activation = ir::Activation::kTanh;
  spec.attributes = attributes;
  spec.outputs.push_back({e.name("lstm"), DType::kFloat32});
  const int all = e.builder().add(std::move(spec)).at(0);
  return call.config.boolean("return_sequences", false) ? all : e.take(all, 1, -1);
}

}  // namespace leadline::keras
