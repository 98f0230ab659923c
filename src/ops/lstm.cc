// SPDX-License-Identifier: Apache-2.0
// LSTM: one step, as the full kernel (the cell of lstm_common.h) or the basic one (one matrix for all gates).
#include "ops/lstm.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/quant/fixed_math.h"
#include "ops/families.h"
#include "ops/lstm_common.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace lstm {
namespace {

LstmOptions options_of(const LstmAttributes& a) {
  return {a.activation, a.cell_clip, a.proj_clip, a.asymmetric_quantize_inputs};
}

bool is_basic(const OpContext& c) { return c.attributes<LstmAttributes>().kernel_type == LstmKernel::kBasic; }

LstmShape checked_shape(const OpContext& c) {
  const Shape& in = c.input(0).shape;
  c.require(c.input_count() == 20 || c.input_count() == 24, "there are {} inputs, expected 20 or 24", c.input_count());
  c.require(c.output_count() == 1, "there are {} outputs, expected 1", c.output_count());
  c.require(in.rank() == 2, "input has shape {}, expected 2 dimensions", in.to_string());
  return check_lstm(c, kLstmLayout, options_of(c.attributes<LstmAttributes>()), in[0], in[1]);
}

// Operands of the basic kernel.
enum BasicInput { kInput = 0, kActivation = 1, kWeights = 2, kBias = 3, kState = 4 };
enum BasicOutput { kNewActivation = 0, kNewState = 1, kConcatenated = 2, kGates = 3 };

void infer_basic(InferContext& c) {
  c.require(c.input_count() == 5 && c.output_count() == 4, "there are {} inputs and {} outputs, expected 5 and 4",
            c.input_count(), c.output_count());
  for (int i = 0; i < 5; ++i) c.require(c.has_input(i), "input {} is missing", i);
  c.require_input_type(kInput, {DType::kFloat32, DType::kUInt8});
  const DType values = c.input(kInput).dtype();
  const bool quantized = values == DType::kUInt8;
  const DType wide = quantized ? DType::kInt16 : DType::kFloat32;
  c.require_input_type(kActivation, {values});
  c.require_input_type(kWeights, {values});
  c.require_input_type(kBias, {quantized ? DType::kInt32 : DType::kFloat32});
  c.require_input_type(kState, {wide});
  c.require_output_type(kNewActivation, {values});
  c.require_output_type(kNewState, {wide});
  c.require_output_type(kConcatenated, {values});
  c.require_output_type(kGates, {wide});
  const Shape& in = c.input(kInput).shape;
  const Shape& activation = c.input(kActivation).shape;
  c.require(in.rank() == 2 && activation.rank() == 2 && activation[0] == in[0],
            "input has shape {} and the last activation {}, expected [batch, n] both", in.to_string(),
            activation.to_string());
  const int64_t depth = activation[1];
  c.require(std::max(in[1], depth) <= std::numeric_limits<int32_t>::max(), "the cell is too large");
  const int64_t total = in[1] + depth;
  c.require(c.input(kWeights).shape == Shape{4 * depth, total}, "weights have shape {}, expected [{}, {}]",
            c.input(kWeights).shape.to_string(), 4 * depth, total);
  c.require(c.input(kBias).shape == Shape{4 * depth}, "biases have shape {}, expected [{}]",
            c.input(kBias).shape.to_string(), 4 * depth);
  c.require(c.input(kState).shape == activation, "the state has shape {}, expected {}",
            c.input(kState).shape.to_string(), activation.to_string());
  if (quantized) {
    for (int i : {kWeights, kBias}) c.require_quantized(c.input(i), "input");
    c.require_quantized(c.output(kNewState), "state");
    const float scale = c.output(kNewState).quantization().scale0();
    c.require(std::abs(scale - 0x1p-11F) < 1e-6F, "the state's scale is {}, expected 2^-11", scale);
  }
  c.set_output_shape(kNewActivation, activation);
  c.set_output_shape(kNewState, activation);
  c.set_output_shape(kConcatenated, {in[0], total});
  c.set_output_shape(kGates, {in[0], 4 * depth});
}

/// Puts input and last activation side by side, row by row.
template <typename T>
void concatenate(const RunContext& c) {
  const int64_t inputs = c.input(kInput).shape[1];
  const int64_t depth = c.input(kActivation).shape[1];
  std::byte* to = c.output(kConcatenated).data;
  const int64_t input_bytes = inputs * static_cast<int64_t>(sizeof(T));
  const int64_t depth_bytes = depth * static_cast<int64_t>(sizeof(T));
  for_items(c.input(kInput).shape[0], kByteCost * static_cast<double>(input_bytes + depth_bytes) + 4, [&](int64_t b) {
    std::byte* row = to + b * (input_bytes + depth_bytes);
    copy_bytes(row, c.input(kInput).data + b * input_bytes, input_bytes);
    copy_bytes(row + input_bytes, c.input(kActivation).data + b * depth_bytes, depth_bytes);
  });
}

/// Inputs that are variables carry the results to the next run.
void keep_state(const RunContext& c, bool activation_is_variable, bool state_is_variable) {
  auto keep = [&](int output, int input) {
    const TensorView& from = c.output(output);
    copy_bytes(c.input(input).data, from.data, from.bytes);
  };
  if (activation_is_variable) keep(kNewActivation, kActivation);
  if (state_is_variable) keep(kNewState, kState);
}

/// Of one row of a batch.
double row_cost(int64_t depth, int64_t total) {
  return 4 * static_cast<double>(depth) * (static_cast<double>(total) + 32) + 64;
}

void run_basic_float(RunContext& c) {
  concatenate<float>(c);
  const int64_t batch = c.input(kInput).shape[0];
  const int64_t depth = c.input(kActivation).shape[1];
  const int64_t total = c.output(kConcatenated).shape[1];
  auto logistic = [](float x) { return 1.0F / (1.0F + std::exp(-x)); };
  for_items(batch, row_cost(depth, total), [&](int64_t b) {
    float* gates = c.output(kGates).mutable_as<float>() + b * 4 * depth;
    const float* row = c.output(kConcatenated).as<float>() + b * total;
    for_items(4 * depth, 1, [&](int64_t r) { gates[r] = c.input(kBias).as<float>()[r]; });
    WeightMatrix weights;
    weights.f32 = c.input(kWeights).as<float>();
    multiply_add(weights, {row, nullptr, {}}, 4 * depth, total, gates);
    for_items(depth, 64, [&](int64_t i) {
      const float old = c.input(kState).as<float>()[b * depth + i];
      const float state = logistic(gates[i]) * std::tanh(gates[depth + i]) + logistic(gates[2 * depth + i]) * old;
      c.output(kNewState).mutable_as<float>()[b * depth + i] = state;
      c.output(kNewActivation).mutable_as<float>()[b * depth + i] = logistic(gates[3 * depth + i]) * std::tanh(state);
    });
  });
}

/// x * m as TFLite's matrix product rounds on the way out: the last shift takes ties upwards.
int32_t rescale(int32_t x, kernels::Multiplier m) {
  const int32_t raised = kernels::saturate_i32(int64_t{x} * (int64_t{1} << std::max(m.shift, 0)));
  const int right = std::max(-m.shift, 0);
  const int64_t high = kernels::rounding_doubling_high_mul(raised, m.value);
  return static_cast<int32_t>(right > 0 ? (high + (int64_t{1} << (right - 1))) >> right : high);
}

/// uint8 values around 128, int16 gates in Q3.12 and state in Q4.11.
void run_basic_quantized(RunContext& c, kernels::Multiplier scale) {
  using kernels::fixed_math::multiply_q15;
  concatenate<uint8_t>(c);
  const int64_t batch = c.input(kInput).shape[0];
  const int64_t depth = c.input(kActivation).shape[1];
  const int64_t total = c.output(kConcatenated).shape[1];
  const int32_t weight_zero = c.input(kWeights).quantization->zero_point0();
  for_items(batch, row_cost(depth, total), [&](int64_t b) {
    auto* gates = c.output(kGates).mutable_as<int16_t>() + b * 4 * depth;
    const auto* row = c.output(kConcatenated).as<uint8_t>() + b * total;
    for_items(4 * depth, static_cast<double>(total), [&](int64_t r) {
      const auto* weights = c.input(kWeights).as<uint8_t>() + r * total;
      int64_t sum = c.input(kBias).as<int32_t>()[r];
      for_items(total, 1, [&](int64_t k) { sum += (weights[k] - weight_zero) * (row[k] - 128); });
      const int32_t value = rescale(kernels::saturate_i32(sum), scale);
      gates[r] = static_cast<int16_t>(std::clamp(value, -32768, 32767));
    });
    for_items(depth, 96, [&](int64_t i) {
      const int32_t added = multiply_q15(kernels::logistic_q15(gates[i]), kernels::tanh_q15(gates[depth + i], 3));
      const int32_t kept =
          multiply_q15(kernels::logistic_q15(gates[2 * depth + i]), c.input(kState).as<int16_t>()[b * depth + i]);
      const auto state =
          static_cast<int16_t>(std::clamp(kernels::rounding_divide_by_pot(added, 4) + kept, -32768, 32767));
      const int32_t out = multiply_q15(kernels::logistic_q15(gates[3 * depth + i]), kernels::tanh_q15(state, 4));
      c.output(kNewState).mutable_as<int16_t>()[b * depth + i] = state;
      c.output(kNewActivation).mutable_as<uint8_t>()[b * depth + i] =
          static_cast<uint8_t>(std::clamp(kernels::rounding_divide_by_pot(out, 8), -128, 127) + 128);
    });
  });
}

std::unique_ptr<Kernel> prepare_basic(PrepareContext& c) {
  const bool activation_kept = c.input(kActivation).value->variable;
  const bool state_kept = c.input(kState).value->variable;
  if (c.input(kInput).dtype() == DType::kFloat32) {
    return make_kernel([=](RunContext& run) {
      run_basic_float(run);
      keep_state(run, activation_kept, state_kept);
    });
  }
  const auto scale = kernels::quantize_multiplier(4096.0 * c.input(kBias).quantization().scale0());
  return make_kernel([=](RunContext& run) {
    run_basic_quantized(run, scale);
    keep_state(run, activation_kept, state_kept);
  });
}

void infer(InferContext& c) {
  if (is_basic(c)) return infer_basic(c);
  const LstmShape shape = checked_shape(c);
  c.require_output_type(0, {c.input(0).dtype()});
  c.set_output_shape(0, {shape.batch, shape.outputs});
}

std::unique_ptr<Kernel> prepare(PrepareContext& c) {
  if (is_basic(c)) return prepare_basic(c);
  const LstmShape shape = checked_shape(c);
  const LstmOptions options = options_of(c.attributes<LstmAttributes>());
  c.request_scratch(lstm_workspace_bytes(shape));
  LstmSequence q;
  q.input_row_stride = shape.inputs;
  q.output_row_stride = shape.outputs;
  return make_kernel([shape, q, options, cell = integer_lstm_cell(c, kLstmLayout, shape, options)](RunContext& run) {
    run_lstm(run, kLstmLayout, shape, q, options, cell, run.input(0), nullptr, run.output(0));
  });
}

}  // namespace
}  // namespace lstm

void register_lstm(Registry& registry) {
  using namespace lstm;
  registry.add({.id = op::kLstm,
                .max_version = 4,
                .min_inputs = 5,
                .max_inputs = 24,
                .required_inputs = 1,
                .min_outputs = 1,
                .max_outputs = 4,
                .options = builtin_options(14),
                .make_attributes = make_attributes<LstmAttributes>,
                .infer = infer,
                .prepare = prepare,
                .pure = false,
                .quantize = hybrid_rule({.int8 = 1, .hybrid = 4}, kLstmWeightInputs),
                .types = "f32 u8 i8x8_16 hybrid"});
}

}  // namespace leadline::ops
