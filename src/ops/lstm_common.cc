// SPDX-License-Identifier: Apache-2.0
#include "ops/lstm_common.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace leadline::ops {
namespace {

constexpr const char* kGateNames[] = {"input", "forget", "cell", "output"};

/// Operand of a gate's peephole, which the cell gate does not have.
int peephole_index(const LstmLayout& layout, int gate) { return layout.peephole + (gate == kOutputGate ? 2 : gate); }

/// The checks of one node, with what they have to agree on.
class Checker {
 public:
  Checker(const OpContext& c, const LstmLayout& layout, LstmShape shape, DType weights)
      : c_(c), layout_(layout), shape_(shape), weights_(weights) {}

  void check_all() {
    const bool coupled = !c_.has_input(layout_.input_weights);
    const bool peephole = c_.has_input(peephole_index(layout_, kOutputGate));
    for (int gate = kInputGate; gate <= kOutputGate; ++gate) {
      const bool present = gate != kInputGate || !coupled;
      check_gate(gate, present);
      if (gate != kCellGate)
        check_vector(peephole_index(layout_, gate), present && peephole, "peephole weights", gate, peephole_type());
    }
    check_norm(coupled);
    check_projection();
    check_state(layout_.output_state, shape_.outputs, integer() ? DType::kInt8 : DType::kFloat32, "output state");
    check_state(layout_.cell_state, shape_.cells, integer() ? DType::kInt16 : DType::kFloat32, "cell state");
  }

 private:
  bool integer() const { return shape_.kind == LstmKind::kInteger; }
  DType bias_type() const { return integer() ? DType::kInt32 : DType::kFloat32; }
  DType norm_type() const { return integer() ? DType::kInt16 : DType::kFloat32; }
  DType peephole_type() const { return integer() ? DType::kInt16 : weights_; }

  void check_operand(int i, const Shape& shape, DType type, const char* what, const char* gate) {
    const Operand& o = c_.input(i);
    const bool bytes = type == DType::kInt8 && !integer() && o.dtype() == DType::kUInt8;  // old files say uint8
    if (o.dtype() != type && !bytes) {
      c_.fail(ErrorCode::kUnsupported, "{} gate: {} '{}' have type {}, expected {}", gate, what, o.value->name,
              dtype_name(o.dtype()), dtype_name(type));
    }
    c_.require(o.shape == shape, "{} gate: {} '{}' have shape {}, expected {}", gate, what, o.value->name,
               o.shape.to_string(), shape.to_string());
    const bool quantized = type == DType::kInt8 || type == DType::kInt16;
    if (quantized) c_.require_quantized(o, what);
  }

  void check_presence(int i, bool expected, const char* what, const char* gate) {
    const bool present = i >= 0 && c_.has_input(i);
    c_.require(present == expected, "{} gate: {} are {}", gate, what, present ? "given, but not expected" : "missing");
  }

  void check_gate(int gate, bool present) {
    const char* name = kGateNames[gate];
    const int input = layout_.input_weights + gate;
    const int recurrent = layout_.recurrent_weights + gate;
    check_presence(input, present, "input weights", name);
    check_presence(recurrent, present, "recurrent weights", name);
    check_presence(layout_.bias + gate, present, "biases", name);
    const int aux = layout_.aux_weights < 0 ? -1 : layout_.aux_weights + gate;
    if (aux >= 0) check_presence(aux, present && shape_.aux_inputs > 0, "auxiliary weights", name);
    if (!present) return;
    check_operand(input, {shape_.cells, shape_.inputs}, weights_, "input weights", name);
    if (!integer() && c_.input(recurrent).shape.rank() == 1) {
      check_operand(recurrent, {shape_.cells}, DType::kFloat32, "diagonal recurrent weights", name);
      c_.require(shape_.cells == shape_.outputs, "diagonal recurrent weights need as many outputs as cells");
    } else {
      check_operand(recurrent, {shape_.cells, shape_.outputs}, weights_, "recurrent weights", name);
    }
    check_operand(layout_.bias + gate, {shape_.cells}, bias_type(), "biases", name);
    if (aux >= 0 && shape_.aux_inputs > 0) {
      check_operand(aux, {shape_.cells, shape_.aux_inputs}, weights_, "auxiliary weights", name);
    }
  }

  void check_vector(int i, bool present, const char* what, int gate, DType type) {
    check_presence(i, present, what, kGateNames[gate]);
    if (present) check_operand(i, {shape_.cells}, type, what, kGateNames[gate]);
  }

  void check_norm(bool coupled) {
    if (layout_.norm < 0) return;
    const bool normalized = c_.has_input(layout_.norm + kForgetGate);
    for (int gate = kInputGate; gate <= kOutputGate; ++gate) {
      const bool present = normalized && !(coupled && gate == kInputGate);
      check_vector(layout_.norm + gate, present, "layer normalization weights", gate, norm_type());
    }
  }

  void check_projection() {
    const bool projected = c_.has_input(layout_.projection);
    if (projected) {
      check_operand(layout_.projection, {shape_.outputs, shape_.cells}, weights_, "projection weights", "output");
    } else {
      c_.require(shape_.outputs == shape_.cells, "there are {} outputs for {} cells and no projection", shape_.outputs,
                 shape_.cells);
    }
    if (c_.has_input(layout_.projection_bias)) {
      c_.require(projected, "there is a projection bias without projection weights");
      check_operand(layout_.projection_bias, {shape_.outputs}, bias_type(), "projection biases", "output");
    }
  }

  void check_state(int i, int64_t size, DType type, const char* what) {
    c_.require(c_.has_input(i), "the {} is missing", what);
    const Operand& o = c_.input(i);
    c_.require(o.value->variable, "the {} '{}' is not a variable tensor", what, o.value->name);
    if (o.dtype() != type) {
      c_.fail(ErrorCode::kUnsupported, "the {} '{}' has type {}, expected {}", what, o.value->name,
              dtype_name(o.dtype()), dtype_name(type));
    }
    c_.require(o.shape.elements() == shape_.batch * size, "the {} '{}' has shape {}, expected [{}, {}]", what,
               o.value->name, o.shape.to_string(), shape_.batch, size);
    if (integer()) c_.require_quantized(o, what);
  }

  const OpContext& c_;
  const LstmLayout& layout_;
  LstmShape shape_;
  DType weights_;
};

LstmKind kind_of(const OpContext& c, DType weights) {
  const DType input = c.input(0).dtype();
  if (input == DType::kFloat32 && weights == DType::kFloat32) return LstmKind::kFloat;
  if (input == DType::kFloat32 && (weights == DType::kInt8 || weights == DType::kUInt8)) return LstmKind::kHybrid;
  if (input == DType::kInt8 && weights == DType::kInt8) return LstmKind::kInteger;
  c.fail(ErrorCode::kUnsupported, "input of type {} with weights of type {}", dtype_name(input), dtype_name(weights));
}

/// The exponent of a power of two, as TFLite recognizes one.
std::optional<int> exponent_of(float scale) {
  const float exact = std::log(scale) * (1.0F / std::log(2.0F));
  const float rounded = std::round(exact);
  if (!(std::abs(exact - rounded) < 1e-3F)) return std::nullopt;
  return static_cast<int>(rounded);
}

void check_integer(const OpContext& c, const LstmLayout& layout) {
  c.require_quantized(c.input(0), "input");
  c.require_quantized(c.output(0), "output");
  const auto intermediates = c.node().intermediates.size();
  c.require(intermediates == 5, "there are {} intermediate tensors, expected 5", intermediates);
  for (int i = 0; i < 5; ++i) {
    const bool needed = i == 4 || (layout.norm >= 0 && c.has_input(layout.norm + kForgetGate));
    if (!needed) continue;
    const int value = c.node().intermediates[static_cast<size_t>(i)];
    c.require(value != ir::kAbsent && !c.intermediate(i).quantization.scale.empty(),
              "intermediate tensor {} has no quantization parameters", i);
  }
  const float scale = c.input(layout.cell_state).quantization().scale0();
  const auto exponent = exponent_of(scale);
  c.require(exponent && *exponent >= -30 && *exponent <= -9, "the cell state's scale is {}, expected 2^-30 to 2^-9",
            scale);
}

}  // namespace

LstmShape check_lstm(const OpContext& c, const LstmLayout& layout, const LstmOptions& options, int64_t batch,
                     int64_t inputs, int64_t aux_inputs) {
  const int weights = layout.input_weights + kOutputGate;
  const int recurrent = layout.recurrent_weights + kOutputGate;
  c.require(c.has_input(weights) && c.has_input(recurrent), "the output gate's weights are missing");
  c.require(options.cell_clip >= 0.0F && options.projection_clip >= 0.0F, "clips are {} and {}, expected at least 0",
            options.cell_clip, options.projection_clip);
  const Shape& input_shape = c.input(weights).shape;
  const Shape& recurrent_shape = c.input(recurrent).shape;
  c.require(input_shape.rank() == 2, "input weights have shape {}, expected 2 dimensions", input_shape.to_string());
  c.require(recurrent_shape.rank() == 1 || recurrent_shape.rank() == 2,
            "recurrent weights have shape {}, expected 1 or 2 dimensions", recurrent_shape.to_string());
  LstmShape shape;
  const DType type = c.input(weights).dtype();
  shape.kind = kind_of(c, type);
  shape.batch = batch;
  shape.inputs = inputs;
  shape.aux_inputs = aux_inputs;
  shape.cells = input_shape[0];
  shape.outputs = recurrent_shape[recurrent_shape.rank() - 1];
  c.require(shape.cells > 0 && shape.outputs > 0, "the cell has {} cells and {} outputs, expected at least one",
            shape.cells, shape.outputs);
  const int64_t largest = std::max({batch, inputs, aux_inputs, shape.cells, shape.outputs});
  c.require(largest <= std::numeric_limits<int32_t>::max(), "a dimension is {}, which is too large", largest);
  Checker(c, layout, shape, type == DType::kUInt8 ? DType::kInt8 : type).check_all();
  if (shape.kind == LstmKind::kInteger) check_integer(c, layout);
  return shape;
}

LstmCell lstm_cell(const RunContext& c, const LstmLayout& layout, const LstmShape& shape, const LstmOptions& options) {
  auto matrix = [&](int i) {
    kernels::WeightMatrix m;
    if (i < 0 || !c.has_input(i)) return m;
    const TensorView& view = c.input(i);
    if (view.dtype == DType::kFloat32) {
      m.f32 = view.as<float>();
    } else {
      m.i8 = view.as<int8_t>();
      m.scale = view.quantization->scale0();
    }
    return m;
  };
  auto floats = [&](int i) { return i >= 0 && c.has_input(i) ? c.input(i).as<float>() : nullptr; };
  LstmCell cell;
  cell.inputs = shape.inputs;
  cell.aux_inputs = shape.aux_inputs;
  cell.cells = shape.cells;
  cell.outputs = shape.outputs;
  cell.activation = static_cast<kernels::CellActivation>(options.activation);
  cell.cell_clip = options.cell_clip;
  cell.projection_clip = options.projection_clip;
  cell.asymmetric = options.asymmetric;
  for (int g = kInputGate; g <= kOutputGate; ++g) {
    LstmGate& gate = cell.gates[static_cast<size_t>(g)];
    gate.input = matrix(layout.input_weights + g);
    if (layout.aux_weights >= 0) gate.aux = matrix(layout.aux_weights + g);
    gate.recurrent = matrix(layout.recurrent_weights + g);
    gate.recurrent.diagonal = gate.recurrent.present() && c.input(layout.recurrent_weights + g).shape.rank() == 1;
    if (g != kCellGate) gate.peephole = matrix(peephole_index(layout, g));
    gate.bias = floats(layout.bias + g);
    if (layout.norm >= 0) gate.norm = floats(layout.norm + g);
  }
  cell.projection = matrix(layout.projection);
  cell.projection_bias = floats(layout.projection_bias);
  return cell;
}

IntegerLstmCell integer_lstm_cell(const OpContext& c, const LstmLayout& layout, const LstmShape& shape,
                                  const LstmOptions& options) {
  IntegerLstmCell cell;
  if (shape.kind != LstmKind::kInteger) return cell;
  // Scales are combined in floats, in this order, because TFLite's rounding of the factors depends on it.
  auto scale = [&](int i) { return c.has_input(i) ? c.input(i).quantization().scale0() : 1.0F; };
  const bool normalized = layout.norm >= 0 && c.has_input(layout.norm + kForgetGate);
  const float state_scale = scale(layout.output_state);
  const float input_scale = c.input(0).quantization().scale0();
  const int exponent = exponent_of(scale(layout.cell_state)).value_or(-11);
  cell.inputs = shape.inputs;
  cell.cells = shape.cells;
  cell.outputs = shape.outputs;
  cell.cell_exponent = exponent;
  for (int g = kInputGate; g <= kOutputGate; ++g) {
    IntegerLstmGate& gate = cell.gates[static_cast<size_t>(g)];
    const float gate_scale = normalized ? c.intermediate(g).quantization.scale0() : 0x1p-12F;
    auto factor = [](double real) { return kernels::quantize_multiplier(static_cast<float>(real)); };
    gate.input_scale = factor(scale(layout.input_weights + g) * input_scale / gate_scale);
    gate.recurrent_scale = factor(scale(layout.recurrent_weights + g) * state_scale / gate_scale);
    if (g != kCellGate) {
      gate.peephole_scale = factor(std::ldexp(1.0, exponent) * scale(peephole_index(layout, g)) / gate_scale);
    }
    if (!normalized) continue;
    const float norm_scale = scale(layout.norm + g);
    gate.norm_scale = factor(norm_scale);
    gate.norm_scale.shift = std::min(gate.norm_scale.shift + 12, 31);
    // 10000 keeps the normalization from overflowing where all values are alike.
    gate.variance_guard =
        std::max(1, kernels::saturate_i32(std::llround(std::floor(10000.0F * std::min(norm_scale, 1e5F)))));
  }
  const Quantization& hidden = c.intermediate(4).quantization;
  cell.hidden_zero_point = hidden.zero_point0();
  cell.hidden_scale =
      kernels::quantize_multiplier(static_cast<float>(0x1p-15 / static_cast<double>(hidden.scale0()) * 0x1p-15));
  cell.projection_scale = kernels::quantize_multiplier(scale(layout.projection) * hidden.scale0() / state_scale);
  cell.input_zero_point = c.input(0).quantization().zero_point0();
  cell.state_zero_point = c.input(layout.output_state).quantization().zero_point0();
  cell.cell_clip = static_cast<int16_t>(std::min(options.cell_clip / scale(layout.cell_state), 32767.0F));
  cell.projection_clip =
      static_cast<int8_t>(std::min(options.projection_clip / c.output(0).quantization().scale0(), 127.0F));
  return cell;
}

void set_pointers(const RunContext& c, const LstmLayout& layout, IntegerLstmCell& cell) {
  auto pointer = [&]<typename T>(int i, const T*& target) {
    target = i >= 0 && c.has_input(i) ? c.input(i).as<T>() : nullptr;
  };
  for (int g = kInputGate; g <= kOutputGate; ++g) {
    IntegerLstmGate& gate = cell.gates[static_cast<size_t>(g)];
    pointer(layout.input_weights + g, gate.input);
    pointer(layout.recurrent_weights + g, gate.recurrent);
    if (g != kCellGate) pointer(peephole_index(layout, g), gate.peephole);
    pointer(layout.bias + g, gate.bias);
    if (layout.norm >= 0) pointer(layout.norm + g, gate.norm);
  }
  pointer(layout.projection, cell.projection);
  pointer(layout.projection_bias, cell.projection_bias);
}

int64_t lstm_workspace_bytes(const LstmShape& shape) {
  if (shape.kind == LstmKind::kInteger) return integer_lstm_scratch_bytes(shape.cells);
  return lstm_scratch_bytes(shape.inputs, shape.aux_inputs, shape.cells, shape.outputs);
}

void run_lstm(RunContext& c, const LstmLayout& layout, const LstmShape& shape, const LstmSequence& sequence,
              const LstmOptions& options, const IntegerLstmCell& integer_cell, const TensorView& input,
              const TensorView* aux, const TensorView& output) {
  const TensorView& output_state = c.input(layout.output_state);
  const TensorView& cell_state = c.input(layout.cell_state);
  auto each_step = [&](const auto& body) {
    const auto cost = static_cast<double>(4 * shape.cells * (shape.inputs + shape.outputs + 16));
    for_items(shape.batch * sequence.steps, cost, [&](int64_t i) {
      const int64_t s = i % sequence.steps;
      body(i / sequence.steps, sequence.backward ? sequence.steps - 1 - s : s);
    });
  };
  const LstmSequence& q = sequence;
  if (shape.kind == LstmKind::kInteger) {
    IntegerLstmCell cell = integer_cell;
    set_pointers(c, layout, cell);
    each_step([&](int64_t row, int64_t step) {
      const LstmRow place = q.rows_together ? LstmRow{row, shape.batch} : LstmRow{};
      integer_lstm_step(
          cell, place, input.as<int8_t>() + row * q.input_row_stride + step * q.input_step_stride,
          output_state.mutable_as<int8_t>() + row * shape.outputs, cell_state.mutable_as<int16_t>() + row * shape.cells,
          output.mutable_as<int8_t>() + row * q.output_row_stride + step * q.output_step_stride + q.output_offset,
          c.scratch());
    });
    return;
  }
  const LstmCell cell = lstm_cell(c, layout, shape, options);
  each_step([&](int64_t row, int64_t step) {
    const float* aux_row =
        aux != nullptr ? aux->as<float>() + row * q.aux_row_stride + step * q.aux_step_stride : nullptr;
    lstm_step(cell, input.as<float>() + row * q.input_row_stride + step * q.input_step_stride, aux_row,
              output_state.mutable_as<float>() + row * shape.outputs,
              cell_state.mutable_as<float>() + row * shape.cells,
              output.mutable_as<float>() + row * q.output_row_stride + step * q.output_step_stride + q.output_offset,
              c.scratch());
  });
}

}  // namespace leadline::ops
