// SPDX-License-Identifier: Apache-2.0
#include "ops/contraction.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "kernels/quant/unpack.h"
#include "ops/common.h"

namespace leadline::ops {
namespace {

bool is_one_of(std::initializer_list<DType> types, DType type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

void check_weight_quantization(const OpContext& c, const ContractionRule& rule, Arithmetic arithmetic) {
  const Operand& weights = c.input(rule.weights);
  const Quantization& q = weights.quantization();
  if (q.block_size > 0) {
    c.fail(ErrorCode::kUnsupported, "the weights '{}' are quantized in blocks of {}, which is not supported",
           weights.value->name, q.block_size);
  }
  c.require(!q.scale.empty(), "the weights '{}' of type {} have no scale", weights.value->name,
            dtype_name(weights.dtype()));
  c.require(q.zero_point.size() == q.scale.size(), "the weights '{}' have {} scales and {} zero points",
            weights.value->name, q.scale.size(), q.zero_point.size());
  if (q.per_channel()) {
    c.require(q.axis == rule.output_axis && q.scale.size() == static_cast<size_t>(rule.channels),
              "the weights '{}' have {} scales along axis {}, expected {} along axis {}", weights.value->name,
              q.scale.size(), q.axis, rule.channels, rule.output_axis);
    c.require(weights.dtype() != DType::kUInt8 || arithmetic == Arithmetic::kHybrid,
              "the uint8 weights '{}' are quantized per channel, expected per tensor", weights.value->name);
  }
  const Quantization& in = c.input(rule.activations).quantization();
  const Quantization& out = c.output(0).quantization();
  c.require(arithmetic == Arithmetic::kHybrid ||
                std::all_of(q.scale.begin(), q.scale.end(),
                            [&](float scale) { return kernels::finite_ratio(in.scale0(), scale, out.scale0()); }),
            "the scales of input, weights and output give a factor that is not finite");
  // Only uint8 weights and those of FULLY_CONNECTED may be asymmetric, and only per tensor.
  const bool may_shift = !q.per_channel() && arithmetic != Arithmetic::kHybrid;
  const bool symmetric = std::all_of(q.zero_point.begin(), q.zero_point.end(), [](int64_t z) { return z == 0; });
  c.require(symmetric || may_shift || weights.dtype() == DType::kUInt8,
            "the zero points of the weights '{}' are not all 0", weights.value->name);
}

void check_bias(const OpContext& c, const ContractionRule& rule, Arithmetic arithmetic) {
  if (!c.has_input(rule.bias)) return;
  const Operand& bias = c.input(rule.bias);
  switch (arithmetic) {
    case Arithmetic::kFloat:
    case Arithmetic::kHybrid:
      c.require_input_type(rule.bias, {DType::kFloat32, DType::kFloat16});
      break;
    case Arithmetic::kQuantized:
      c.require_input_type(rule.bias, {DType::kInt32});
      break;
    case Arithmetic::kWide:
      c.require_input_type(rule.bias, {DType::kInt32, DType::kInt64});
      break;
  }
  c.require(bias.shape.elements() == rule.channels, "the bias '{}' of shape {} has {} values, expected {}",
            bias.value->name, bias.shape.to_string(), bias.shape.elements(), rule.channels);
  const auto& zeros = bias.quantization().zero_point;
  c.require(arithmetic == Arithmetic::kFloat || arithmetic == Arithmetic::kHybrid ||
                std::all_of(zeros.begin(), zeros.end(), [](int64_t z) { return z == 0; }),
            "the zero point of the bias '{}' is not 0", bias.value->name);
}

void check_wide(const OpContext& c, const ContractionRule& rule) {
  const Operand& input = c.input(rule.activations);
  const Operand& output = c.output(0);
  c.require(input.quantization().zero_point0() == 0 && output.quantization().zero_point0() == 0,
            "int16 activations have zero points {} (input) and {} (output), expected 0",
            input.quantization().zero_point0(), output.quantization().zero_point0());
  if (rule.bias_attribute == DType::kFloat32) return;
  c.require(is_one_of({DType::kInt32, DType::kInt64}, rule.bias_attribute),
            "quantized_bias_type is {}, expected int32 or int64", dtype_name(rule.bias_attribute));
  if (!c.has_input(rule.bias)) return;
  const Operand& bias = c.input(rule.bias);
  c.require(bias.dtype() == rule.bias_attribute, "quantized_bias_type is {}, but the bias '{}' has type {}",
            dtype_name(rule.bias_attribute), bias.value->name, dtype_name(bias.dtype()));
}

/// The arithmetic that the types ask for; throws for types that do not go together.
Arithmetic arithmetic_of(const OpContext& c, const ContractionRule& rule) {
  const DType weights = c.input(rule.weights).dtype();
  switch (c.input(rule.activations).dtype()) {
    case DType::kFloat32:
      c.require_input_type(rule.weights,
                           {DType::kFloat32, DType::kFloat16, DType::kInt8, DType::kUInt8, DType::kInt4, DType::kInt2});
      c.require_output_type(0, {DType::kFloat32});
      return is_one_of({DType::kFloat32, DType::kFloat16}, weights) ? Arithmetic::kFloat : Arithmetic::kHybrid;
    case DType::kInt8:
      c.require_input_type(rule.weights, {DType::kInt8, DType::kInt4, DType::kInt2});
      c.require_output_type(0, {DType::kInt8});
      return Arithmetic::kQuantized;
    case DType::kUInt8:
      c.require_input_type(rule.weights, {DType::kUInt8});
      if (rule.int16_output) {
        c.require_output_type(0, {DType::kUInt8, DType::kInt16});
      } else {
        c.require_output_type(0, {DType::kUInt8});
      }
      return Arithmetic::kQuantized;
    case DType::kInt16:
      if (rule.int16_weights) {
        c.require_input_type(rule.weights, {DType::kInt8, DType::kInt4, DType::kInt2, DType::kInt16});
      } else {
        c.require_input_type(rule.weights, {DType::kInt8, DType::kInt4, DType::kInt2});
      }
      c.require_output_type(0, {DType::kInt16});
      return Arithmetic::kWide;
    default:
      c.require_input_type(rule.activations, {DType::kFloat32, DType::kInt8, DType::kUInt8, DType::kInt16});
  }
  return Arithmetic::kFloat;
}

void unpack_halves(const uint16_t* source, int64_t count, float* target) {
  for_pieces(count, 1,
             [&](int64_t begin, int64_t end) { kernels::unpack_half(source + begin, end - begin, target + begin); });
}

template <int kBits>
void unpack_integers(const uint8_t* source, int64_t count, int8_t* target) {
  for_pieces(count, 1, [&](int64_t begin, int64_t end) {
    kernels::unpack_signed<kBits>(source, begin, end - begin, target + begin);
  });
}

/// Calls body(channel, scale of its weights).
template <typename Body>
void for_weight_scales(const Contraction& f, const Body& body) {
  const Quantization& q = *f.weight_quantization;
  for_pieces(f.rule.channels, 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i, q.scale[q.per_channel() ? static_cast<size_t>(i) : 0]);
  });
}

}  // namespace

Arithmetic check_contraction(const OpContext& c, const ContractionRule& rule) {
  const Arithmetic arithmetic = arithmetic_of(c, rule);
  if (arithmetic == Arithmetic::kQuantized || arithmetic == Arithmetic::kWide) {
    c.require_quantized(c.input(rule.activations), "input");
    c.require_quantized(c.output(0), "output");
  }
  if (arithmetic != Arithmetic::kFloat) check_weight_quantization(c, rule, arithmetic);
  check_bias(c, rule, arithmetic);
  if (arithmetic == Arithmetic::kWide) check_wide(c, rule);
  return arithmetic;
}

bool fixed_input(const OpContext& c, int i, int activations) {
  const Operand& operand = c.input(i);
  return operand.known && (operand.value->constant || !c.input(activations).known);
}

Contraction make_contraction(const OpContext& c, const ContractionRule& rule, ir::Activation activation) {
  const Operand& input = c.input(rule.activations);
  const Operand& weights = c.input(rule.weights);
  const Operand& output = c.output(0);
  Contraction result;
  result.arithmetic = check_contraction(c, rule);
  result.rule = rule;
  result.activation_type = input.dtype();
  result.weight_type = weights.dtype();
  result.output_type = output.dtype();
  result.weight_count = weights.shape.elements();
  result.weight_quantization = &weights.quantization();
  result.has_fixed_weights = fixed_input(c, rule.weights, rule.activations);
  if (result.has_fixed_weights) result.fixed_weights = weights.data;
  if (c.has_input(rule.bias)) {
    result.has_bias = true;
    result.bias_type = c.input(rule.bias).dtype();
    result.has_fixed_bias = fixed_input(c, rule.bias, rule.activations);
    if (result.has_fixed_bias) result.fixed_bias = c.input(rule.bias).data;
  }
  if (rule.bias_attribute == DType::kInt32) result.wide_rounding = kernels::reference::WideRounding::kNarrowSum;
  if (result.arithmetic == Arithmetic::kFloat || result.arithmetic == Arithmetic::kHybrid) {
    std::tie(result.lo, result.hi) = activation_range(c, activation);
  } else {
    std::tie(result.level_lo, result.level_hi) = quantized_activation_range(c, activation, output);
    result.input_zero = input.quantization().zero_point0();
    result.output_zero = output.quantization().zero_point0();
    result.input_scale = input.quantization().scale0();
    result.output_scale = output.quantization().scale0();
    const bool symmetric = rule.symmetric_weights && weights.dtype() != DType::kUInt8;
    if (!symmetric && !weights.quantization().per_channel()) {
      result.weight_zero = weights.quantization().zero_point0();
    }
  }
  return result;
}

bool Contraction::compact_weights() const {
  return is_one_of({DType::kFloat16, DType::kInt4, DType::kInt2}, weight_type);
}

bool Contraction::uniform_scale() const {
  const auto& scale = weight_quantization->scale;
  return std::all_of(scale.begin(), scale.end(), [&](float s) { return s == scale[0]; });
}

int64_t Contraction::widened_bytes() const {
  return weight_type == DType::kFloat32 || weight_type == DType::kFloat16 ? weight_count * 4 : weight_count;
}

void Contraction::widen_weights(const std::byte* source, std::byte* target) const {
  switch (weight_type) {
    case DType::kFloat16:
      unpack_halves(reinterpret_cast<const uint16_t*>(source), weight_count, reinterpret_cast<float*>(target));
      break;
    case DType::kInt4:
      unpack_integers<4>(reinterpret_cast<const uint8_t*>(source), weight_count, reinterpret_cast<int8_t*>(target));
      break;
    case DType::kInt2:
      unpack_integers<2>(reinterpret_cast<const uint8_t*>(source), weight_count, reinterpret_cast<int8_t*>(target));
      break;
    default:
      break;
  }
}

void Contraction::fill_scales(float* scales) const {
  for_weight_scales(*this, [&](int64_t i, float scale) {
    // The order of the two float32 operations is XNNPACK's.
    scales[i] = arithmetic == Arithmetic::kHybrid
                    ? scale
                    : static_cast<float>(kernels::scale_ratio(input_scale, scale, output_scale));
  });
}

void Contraction::fill_multipliers(kernels::Multiplier* multipliers) const {
  for_weight_scales(*this, [&](int64_t i, double scale) {
    multipliers[i] = kernels::quantize_multiplier(double{input_scale} * scale / double{output_scale});
  });
}

void Contraction::fill_real_scales(double* scales) const {
  for_weight_scales(*this,
                    [&](int64_t i, double scale) { scales[i] = double{input_scale} * scale / double{output_scale}; });
}

const float* widen_bias(const TensorView& bias, float* target) {
  if (bias.dtype == DType::kFloat32) return bias.as<float>();
  unpack_halves(bias.as<uint16_t>(), bias.elements(), target);
  return target;
}

}  // namespace leadline::ops
