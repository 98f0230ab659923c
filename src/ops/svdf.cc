// SPDX-License-Identifier: Apache-2.0
// SVDF: every filter weighs the features of a step, remembers its last results in the state, a variable, and weighs
// those; `rank` neighbouring filters make one unit.
#include "ops/svdf.h"

#include <algorithm>
#include <limits>

#include "kernels/quant/fixed_point.h"
#include "ops/families.h"
#include "ops/loops/recurrent.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace svdf {
namespace {

using kernels::Multiplier;

enum SvdfInput { kInput = 0, kFeatures = 1, kTime = 2, kBias = 3, kState = 4 };

struct SvdfShape {
  int64_t batch = 0, inputs = 0, filters = 0, memory = 0, rank = 0, units = 0;
};

void check_types(const OpContext& c) {
  c.require_input_type(kInput, {DType::kFloat32, DType::kInt8});
  if (c.input(kInput).dtype() == DType::kInt8) {
    c.require_input_type(kFeatures, {DType::kInt8});
    c.require_input_type(kTime, {DType::kInt16});
    if (c.has_input(kBias)) c.require_input_type(kBias, {DType::kInt32});
    c.require_input_type(kState, {DType::kInt16});
    for (int i : {kInput, kFeatures, kTime, kState}) c.require_quantized(c.input(i), "input");
    c.require_quantized(c.output(0), "output");
    const auto activation = c.attributes<SvdfAttributes>().activation;
    c.require(activation == ir::Activation::kRelu, "fused activation is {}, expected RELU for an int8 SVDF",
              static_cast<int>(activation));
  } else {
    c.require_input_type(kFeatures, {DType::kFloat32, DType::kInt8, DType::kUInt8});  // old files say uint8 for int8
    c.require_input_type(kTime, {c.input(kFeatures).dtype()});
    if (c.has_input(kBias)) c.require_input_type(kBias, {DType::kFloat32});
    c.require_input_type(kState, {DType::kFloat32});
    if (c.input(kFeatures).dtype() != DType::kFloat32) {
      for (int i : {kFeatures, kTime}) c.require_quantized(c.input(i), "input");
    }
  }
  c.require_output_type(0, {c.input(kInput).dtype()});
}

SvdfShape checked_shape(const OpContext& c) {
  c.require(c.has_input(kState), "the state is missing");
  check_types(c);
  const Shape& in = c.input(kInput).shape;
  const Shape& features = c.input(kFeatures).shape;
  const Shape& time = c.input(kTime).shape;
  const Shape& state = c.input(kState).shape;
  c.require(in.rank() == 2 && features.rank() == 2 && time.rank() == 2,
            "shapes are {}, {} and {}, expected 2 dimensions each", in.to_string(), features.to_string(),
            time.to_string());
  SvdfShape s{in[0], in[1], features[0], time[1], c.attributes<SvdfAttributes>().rank, 0};
  c.require(s.rank >= 1 && s.filters % s.rank == 0, "rank is {} for {} filters", s.rank, s.filters);
  s.units = s.filters / s.rank;
  const int64_t largest = std::max({s.batch, s.inputs, s.filters, s.memory});
  c.require(largest <= std::numeric_limits<int32_t>::max(), "a dimension is {}, which is too large", largest);
  c.require(features[1] == s.inputs, "feature weights are for {} features, the input has {}", features[1], s.inputs);
  c.require(time[0] == s.filters, "time weights are for {} filters, expected {}", time[0], s.filters);
  c.require(s.memory >= 1, "the filters have no memory");
  c.require(!c.has_input(kBias) || c.input(kBias).shape == Shape{s.units},
            "the bias has the wrong shape, expected [{}]", s.units);
  c.require(state.rank() == 2 && state[0] == s.batch && state[1] == s.memory * s.filters,
            "the state has shape {}, expected [{}, {}]", state.to_string(), s.batch, s.memory * s.filters);
  c.require(c.input(kState).value->variable, "the state '{}' is not a variable tensor", c.input(kState).value->name);
  return s;
}

void infer(InferContext& c) {
  const SvdfShape s = checked_shape(c);
  c.set_output_shape(0, {s.batch, s.units});
}

/// Drops every filter's oldest value; the last place is free then.
template <typename T>
void shift_state(const SvdfShape& s, T* state) {
  for_items(s.batch * s.filters, static_cast<double>(s.memory), [&](int64_t f) {
    T* memory = state + f * s.memory;
    for_pieces(s.memory - 1, 1,
               [&](int64_t begin, int64_t end) { std::copy(memory + begin + 1, memory + end + 1, memory + begin); });
  });
}

/// Of one row of a batch.
double row_cost(const SvdfShape& s) {
  return static_cast<double>(s.filters) * static_cast<double>(s.inputs + s.memory);
}

void run_float(RunContext& c, const SvdfShape& s, kernels::CellActivation activation, bool asymmetric) {
  const TensorView& features = c.input(kFeatures);
  const TensorView& time = c.input(kTime);
  const bool hybrid = features.dtype != DType::kFloat32;
  kernels::WeightMatrix matrix;
  if (hybrid) {
    matrix.i8 = features.as<int8_t>();
    matrix.scale = features.quantization->scale0();
  } else {
    matrix.f32 = features.as<float>();
  }
  auto* results = c.scratch_as<float>();
  auto* quantized = reinterpret_cast<int8_t*>(results + s.filters);
  float* state = c.input(kState).mutable_as<float>();
  shift_state(s, state);
  const float time_scale = hybrid ? time.quantization->scale0() : 1.0F;
  for_items(s.batch, row_cost(s), [&](int64_t b) {
    for_items(s.filters, 1, [&](int64_t f) { results[f] = 0.0F; });
    const float* in = c.input(kInput).as<float>() + b * s.inputs;
    multiply_add(matrix, row_operand(in, s.inputs, hybrid, asymmetric, quantized), s.filters, s.inputs, results);
    for_items(s.filters, static_cast<double>(s.memory), [&](int64_t f) {
      float* memory = state + (b * s.filters + f) * s.memory;
      memory[s.memory - 1] = results[f];
      if (hybrid) {
        float sum = 0.0F;
        const auto* weights = time.as<int8_t>() + f * s.memory;
        for_items(s.memory, 4, [&](int64_t m) { sum += memory[m] * (static_cast<float>(weights[m]) * time_scale); });
        results[f] = sum;
      } else {
        results[f] = dot_in_pieces(time.as<float>() + f * s.memory, memory, s.memory);
      }
    });
    float* out = c.output(0).mutable_as<float>() + b * s.units;
    for_items(s.units, 4 * static_cast<double>(s.rank), [&](int64_t u) {
      float sum = 0.0F;
      for_items(s.rank, 4, [&](int64_t r) { sum += results[u * s.rank + r]; });
      out[u] = c.has_input(kBias) ? sum + c.input(kBias).as<float>()[u] : sum;
    });
    activate_cells(activation, out, out, s.units);
  });
}

void run_integer(RunContext& c, const SvdfShape& s, Multiplier to_state, Multiplier to_output) {
  auto* state = c.input(kState).mutable_as<int16_t>();
  const int32_t input_zero = c.input(kInput).quantization->zero_point0();
  const int32_t output_zero = c.output(0).quantization->zero_point0();
  shift_state(s, state);
  const double filter_cost = static_cast<double>(s.inputs + s.memory) + 16;
  for_items(s.batch * s.units, filter_cost * static_cast<double>(s.rank), [&](int64_t i) {
    const int64_t b = i / s.units;
    const int64_t u = i % s.units;
    const auto* in = c.input(kInput).as<int8_t>() + b * s.inputs;
    int64_t sum = c.has_input(kBias) ? c.input(kBias).as<int32_t>()[u] : 0;
    for_items(s.rank, filter_cost, [&](int64_t r) {
      const int64_t f = u * s.rank + r;
      const int64_t product = dot_in_pieces(c.input(kFeatures).as<int8_t>() + f * s.inputs, in, input_zero, s.inputs);
      auto* memory = state + (b * s.filters + f) * s.memory;
      const int32_t scaled = kernels::multiply(kernels::saturate_i32(product), to_state);
      memory[s.memory - 1] = static_cast<int16_t>(std::clamp(scaled, -32768, 32767));
      const auto* weights = c.input(kTime).as<int16_t>() + f * s.memory;
      for_items(s.memory, 1, [&](int64_t m) { sum += weights[m] * memory[m]; });
    });
    const int64_t value = int64_t{kernels::multiply(kernels::saturate_i32(sum), to_output)} + output_zero;
    c.output(0).mutable_as<int8_t>()[i] = static_cast<int8_t>(std::clamp<int64_t>(value, -128, 127));
  });
}

std::unique_ptr<Kernel> prepare(PrepareContext& c) {
  const SvdfShape s = checked_shape(c);
  const auto& a = c.attributes<SvdfAttributes>();
  if (c.input(kInput).dtype() == DType::kInt8) {
    // Combined in floats, in this order, because TFLite's rounding of the factors depends on it.
    auto scale = [&](int i) { return c.input(i).quantization().scale0(); };
    const float to_state = scale(kInput) * scale(kFeatures) / scale(kState);
    const float to_output = scale(kState) * scale(kTime) / c.output(0).quantization().scale0();
    return make_kernel(
        [s, first = kernels::quantize_multiplier(to_state),
         second = kernels::quantize_multiplier(to_output)](RunContext& run) { run_integer(run, s, first, second); });
  }
  c.request_scratch(s.filters * static_cast<int64_t>(sizeof(float)) + s.inputs);
  return make_kernel(
      [s, activation = static_cast<kernels::CellActivation>(a.activation),
       asymmetric = a.asymmetric_quantize_inputs](RunContext& run) { run_float(run, s, activation, asymmetric); });
}

}  // namespace
}  // namespace svdf

void register_svdf(Registry& registry) {
  using namespace svdf;
  registry.add({.id = op::kSvdf,
                .max_version = 4,
                .min_inputs = 5,
                .max_inputs = 5,
                .required_inputs = 3,
                .options = builtin_options(6),
                .make_attributes = make_attributes<SvdfAttributes>,
                .infer = infer,
                .prepare = prepare,
                .pure = false,
                .quantize = hybrid_rule({.int8 = 3, .hybrid = 4}, input_set({kFeatures, kTime})),
                .types = "f32 i8 hybrid"});
}

}  // namespace leadline::ops
