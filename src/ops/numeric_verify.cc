// SPDX-License-Identifier: Apache-2.0
// NumericVerify: what a quantized tensor lost, dequantized minus reference, element by element. With log_if_failed and
// a tolerance of 0.1 or more, a difference above tolerance * scale is an error. And LeadlineProbe, where observers see
// several values at once, of any types and shapes; it computes nothing and is never written to files (src/debug).
#include <algorithm>
#include <cmath>

#include "core/half.h"
#include "io/flexbuffer_map.h"
#include "ops/common.h"
#include "ops/families.h"

namespace leadline::ops {
namespace numeric_verify {
namespace {

struct Options {
  float tolerance = 0.0F;
  bool strict = false;
};

Options read_options(const OpContext& c) {
  const auto map = FlexMap::parse(c.node().custom_options);
  c.require(map.has_value(), "the custom options are not a FlexBuffers map");
  const float tolerance = map->get_float("tolerance", 0.0F);
  return {tolerance, map->get_bool("log_if_failed", false) && static_cast<double>(tolerance) >= 0.1};
}

void infer(InferContext& c) {
  read_options(c);
  c.require_input_type(0, {DType::kUInt8, DType::kInt8, DType::kInt16, DType::kFloat16});
  c.require_input_type(1, {DType::kFloat32});
  c.require_output_type(0, {DType::kFloat32});
  const Operand& input = c.input(0);
  const Quantization& q = input.quantization();
  if (input.dtype() != DType::kFloat16) {
    c.require(!q.scale.empty() && q.scale.size() == q.zero_point.size(), "the input '{}' of type {} is not quantized",
              input.value->name, dtype_name(input.dtype()));
    c.require(!q.per_channel() || (q.axis >= 0 && q.axis < input.shape.rank() &&
                                   input.shape[q.axis] == static_cast<int64_t>(q.scale.size())),
              "the input '{}' of shape {} has {} scales along axis {}", input.value->name, input.shape.to_string(),
              q.scale.size(), q.axis);
  }
  c.require(c.input(1).shape == input.shape, "the reference has shape {}, the input {}: expected the same",
            c.input(1).shape.to_string(), input.shape.to_string());
  c.set_output_shape(0, input.shape);
}

/// A loop over elements that computes the real value of each.
template <typename T>
void subtract(const RunContext& run) {
  const TensorView& input = run.input(0);
  const Quantization& q = *input.quantization;
  const auto channels = static_cast<int64_t>(q.scale.size());
  int64_t inner = 1;  // elements that share a scale
  for (int axis = q.axis + 1; q.per_channel() && axis < input.shape.rank(); ++axis) inner *= input.shape[axis];
  const T* levels = input.as<T>();
  const float* reference = run.input(1).as<float>();
  float* output = run.output(0).mutable_as<float>();
  run.pool().for_pieces(input.elements(), 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto k = static_cast<size_t>(channels > 1 ? i / inner % channels : 0);
      const auto offset = static_cast<int32_t>(levels[i]) - static_cast<int32_t>(q.zero_point[k]);
      output[i] = static_cast<float>(static_cast<double>(q.scale[k]) * offset) - reference[i];
    }
  });
}

void subtract_half(const RunContext& run) {
  const auto* input = run.input(0).as<uint16_t>();
  const float* reference = run.input(1).as<float>();
  float* output = run.output(0).mutable_as<float>();
  for (int64_t i = 0; i < run.output(0).elements(); ++i) output[i] = half_to_float(input[i]) - reference[i];
}

void check_tolerance(const RunContext& run, const Options& o) {
  const float allowed = o.tolerance * run.input(0).quantization->scale0();
  const float* difference = run.output(0).as<float>();
  for (int64_t i = 0; i < run.output(0).elements(); ++i) {
    run.require(!(std::abs(difference[i]) > allowed), "element {} is {} where {} was expected: off by more than {}", i,
                run.input(1).as<float>()[i] + difference[i], run.input(1).as<float>()[i], allowed);
  }
}

std::unique_ptr<Kernel> prepare(PrepareContext& c) {
  return make_kernel([o = read_options(c)](RunContext& run) {
    switch (run.input(0).dtype) {
      case DType::kUInt8:
        subtract<uint8_t>(run);
        break;
      case DType::kInt8:
        subtract<int8_t>(run);
        break;
      case DType::kInt16:
        subtract<int16_t>(run);
        break;
      default:
        subtract_half(run);
    }
    if (o.strict) check_tolerance(run, o);
  });
}

void infer_probe(InferContext& c) {
  c.require_output_type(0, {DType::kUInt8});
  c.set_output_shape(0, {0});
}

std::unique_ptr<Kernel> prepare_probe(PrepareContext&) {
  return make_kernel([](RunContext&) {});
}

}  // namespace
}  // namespace numeric_verify

void register_numeric_verify(Registry& registry) {
  using namespace numeric_verify;
  registry.add({.id = op::kNumericVerify,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .infer = infer,
                .prepare = prepare,
                .result_type = DType::kFloat32,  // though TensorFlow's debug models give it the type of the input
                .types = "i8 u8 i16 f16"});
  registry.add({.id = op::kLeadlineProbe,
                .min_inputs = 1,
                .max_inputs = 3,
                .required_inputs = 1,
                .infer = infer_probe,
                .prepare = prepare_probe,
                .pure = false,
                .types = "any"});
}

}  // namespace leadline::ops
