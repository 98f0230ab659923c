// SPDX-License-Identifier: Apache-2.0
// RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 LEAKY_RELU PRELU ELU GELU HARD_SWISH LOGISTIC TANH.
// 8-bit forms are tables of TFLite's own arithmetic; int16 forms follow its fixed-point kernels.
#include "ops/activation.h"

#include <cmath>
#include <limits>

#include "kernels/elementwise/binary_f32.h"
#include "kernels/elementwise/sigmoid_i16.h"
#include "kernels/quant/fixed_point.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace leadline::ops {
namespace {

using kernels::Affine;
using kernels::UnaryF32;

/// f(int32_t stored value) -> int64_t level of a quantized tensor, clamped to its type.
template <typename T, typename F>
std::unique_ptr<Kernel> typed_level_kernel(const F& f) {
  const auto clamped = [f](int32_t v) {
    return static_cast<int32_t>(
        std::clamp<int64_t>(f(v), std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  };
  if constexpr (sizeof(T) == 1) {
    return lut8_kernel(kernels::make_lut8<T>(clamped));
  } else {
    return unary_kernel<T>(clamped, kHeavyCost);
  }
}

template <typename F>
std::unique_ptr<Kernel> level_kernel(const OpContext& c, const F& f) {
  switch (c.input(0).dtype()) {
    case DType::kInt8:
      return typed_level_kernel<int8_t>(f);
    case DType::kUInt8:
      return typed_level_kernel<uint8_t>(f);
    default:
      return typed_level_kernel<int16_t>(f);
  }
}

// RELU, RELU6, RELU_N1_TO_1, RELU_0_TO_1: a clamp.

enum class Clamp : uint8_t { kRelu, kRelu6, kReluN1To1, kRelu0To1 };

constexpr std::pair<float, float> range_of(Clamp clamp) {
  switch (clamp) {
    case Clamp::kRelu:
      return {0.0F, std::numeric_limits<float>::infinity()};
    case Clamp::kRelu6:
      return {0.0F, 6.0F};
    case Clamp::kReluN1To1:
      return {-1.0F, 1.0F};
    default:
      return {0.0F, 1.0F};
  }
}

void infer_relu(InferContext& c) {
  infer_unary(c, {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8, DType::kUInt8, DType::kInt16});
  require_quantized_pair(c);
}

template <Clamp kClamp>
std::unique_ptr<Kernel> prepare_relu(PrepareContext& c) {
  constexpr auto kRange = range_of(kClamp);
  if (!is_small_integer(c.input(0).dtype())) {
    return unary_float_kernel(c, UnaryF32::kClamp, kRange.first, kRange.second);
  }
  const Affine in = affine(c.input(0));
  const Affine out = affine(c.output(0));
  const auto factor = kernels::quantize_multiplier(static_cast<double>(in.scale / out.scale));
  const auto level = [&](float real) {
    return int64_t{out.zero_point} + kernels::saturating_int(std::round(real / out.scale));
  };
  const int64_t lo = level(kRange.first);
  const int64_t hi = std::max(lo, level(kRange.second));
  return level_kernel(c, [=](int32_t v) {
    return std::clamp<int64_t>(int64_t{out.zero_point} + kernels::multiply(v - in.zero_point, factor), lo, hi);
  });
}

// LEAKY_RELU.

void infer_leaky_relu(InferContext& c) {
  infer_relu(c);
  const float alpha = c.attributes<LeakyReluAttributes>().alpha;
  c.require(std::isfinite(alpha), "alpha is {}, expected a finite number", alpha);
}

std::unique_ptr<Kernel> prepare_leaky_relu(PrepareContext& c) {
  const float alpha = c.attributes<LeakyReluAttributes>().alpha;
  if (!is_small_integer(c.input(0).dtype())) return unary_float_kernel(c, UnaryF32::kLeakyRelu, alpha);
  const Affine in = affine(c.input(0));
  const Affine out = affine(c.output(0));
  const float rising = c.input(0).quantization().scale0() / c.output(0).quantization().scale0();
  const float sinking = rising * alpha;
  // XNNPACK's form for 8 bits, with factors of 8.8 bits; LiteRT uses it within these limits.
  if (c.input(0).dtype() != DType::kInt16 && rising >= 0x1.0p-8F && rising <= 0x1.0p+7F &&
      std::abs(sinking) >= 0x1.0p-8F && sinking >= -0x1.FFFCp+6F && sinking <= 0x1.0p+7F) {
    const auto above = static_cast<int32_t>(std::lrint(256.0F * rising));
    const auto below = static_cast<int32_t>(std::lrint(256.0F * sinking));
    return level_kernel(c, [=](int32_t v) {
      const int32_t value = v - in.zero_point;
      return int64_t{(value * (value >= 0 ? above : below) + out.zero_point * 256 + 128) >> 8};
    });
  }
  const auto identity = kernels::quantize_multiplier(static_cast<double>(in.scale / out.scale));
  const auto slope = kernels::quantize_multiplier(kernels::scale_ratio(in.scale, std::abs(alpha), out.scale));
  const bool falling = alpha < 0.0F;
  return level_kernel(c, [=](int32_t v) {
    const int32_t value = v - in.zero_point;
    if (value >= 0) return int64_t{out.zero_point} + kernels::multiply(value, identity);
    const int64_t scaled = kernels::multiply(value, slope);
    return int64_t{out.zero_point} + (falling ? -scaled : scaled);
  });
}

// PRELU: a slope per element, both broadcast.

void infer_prelu(InferContext& c) {
  c.require_input_type(
      0, {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8, DType::kUInt8, DType::kInt16});
  const DType type = c.input(0).dtype();
  if (type == DType::kInt16) {
    c.require_input_type(1, {DType::kInt8, DType::kInt16});
  } else {
    c.require_input_type(1, {type});
  }
  c.require_output_type(0, {type});
  if (is_small_integer(type)) {
    c.require_quantized(c.input(0), "input 0");
    c.require_quantized(c.input(1), "input 1");
    c.require_quantized(c.output(0), "output");
  }
  c.set_output_shape(0, broadcast_shapes(c, c.input(0).shape, c.input(1).shape));
}

template <typename T, typename Alpha>
std::unique_ptr<Kernel> quantized_prelu(const OpContext& c) {
  const Affine in = affine(c.input(0));
  const Affine alpha = affine(c.input(1));
  const Affine out = affine(c.output(0));
  const auto identity = kernels::quantize_multiplier(static_cast<double>(in.scale / out.scale));
  const auto slope = kernels::quantize_multiplier(kernels::scale_ratio(in.scale, alpha.scale, out.scale));
  return mixed_kernel<T, Alpha, T>(
      c,
      [=](T x, Alpha y) {
        const int32_t value = x - in.zero_point;
        const int32_t scaled =
            value >= 0 ? kernels::multiply(value, identity) : kernels::multiply(value * (y - alpha.zero_point), slope);
        return std::clamp<int64_t>(int64_t{out.zero_point} + scaled, std::numeric_limits<T>::min(),
                                   std::numeric_limits<T>::max());
      },
      kHeavyCost);
}

std::unique_ptr<Kernel> prepare_prelu(PrepareContext& c) {
  switch (c.input(0).dtype()) {
    case DType::kInt8:
      return quantized_prelu<int8_t, int8_t>(c);
    case DType::kUInt8:
      return quantized_prelu<uint8_t, uint8_t>(c);
    // TFLite's kernel takes the slopes of int16 tensors for int8 whatever their type says (its activations.cc), and
    // models mean what it computes: int16 slopes are read byte by byte, from the front.
    case DType::kInt16:
      return quantized_prelu<int16_t, int8_t>(c);
    case DType::kFloat32: {
      const auto row = kernels::binary_row_f32(kernels::BinaryF32::kPrelu);
      return binary_row_kernel<float>(
          c, [row](const float* a, int64_t a_step, const float* b, int64_t b_step, float* out, int64_t count) {
            row(a, a_step, b, b_step, out, count, 0.0F, 0.0F);
          });
    }
    default:
      break;
  }
  return visit_floating(c, c.input(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    return binary_kernel<T, T>(c, [](Compute<T> x, Compute<T> slope) { return x >= 0 ? x : x * slope; });
  });
}

// ELU, GELU: real functions by table.

void infer_elu(InferContext& c) {
  infer_unary(c, {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8});
  require_quantized_pair(c);
}

std::unique_ptr<Kernel> prepare_elu(PrepareContext& c) {
  if (is_8bit(c.input(0).dtype())) {
    return real_lut_kernel(c, [](float v) { return v < 0.0F ? std::expm1(v) : v; });
  }
  return unary_float_kernel(c, UnaryF32::kElu, 0.0F, 0.0F, kHeavyCost);
}

void infer_gelu(InferContext& c) {
  infer_unary(c, {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8, DType::kUInt8, DType::kInt16});
  require_quantized_pair(c, false);
}

std::unique_ptr<Kernel> prepare_gelu(PrepareContext& c) {
  const bool approximate = c.attributes<GeluAttributes>().approximate;
  if (!is_small_integer(c.input(0).dtype())) {
    return unary_float_kernel(c, approximate ? UnaryF32::kGeluTanh : UnaryF32::kGelu, 0.0F, 0.0F, kHeavyCost);
  }
  if (!approximate) return real_lut_kernel(c, [](float v) { return 0.5F * v * std::erfc(v * -0.70710678F); });
  return real_lut_kernel(
      c, [](float v) { return 0.5F * v * (1.0F + std::tanh(0.79788456F * (v + 0.044715F * v * v * v))); });
}

// HARD_SWISH.

void infer_hard_swish(InferContext& c) {
  infer_unary(c, {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8, DType::kUInt8});
  require_quantized_pair(c);
}

int32_t saturate_i16(int64_t value) { return static_cast<int32_t>(std::clamp<int64_t>(value, -32768, 32767)); }

/// The upper 16 bits of 2ab, rounded to nearest.
int32_t high_mul_i16(int32_t a, int32_t b) { return saturate_i16((int64_t{a} * b + (1 << 14)) >> 15); }

/// A factor with 15 fractional bits.
int32_t narrow_factor(kernels::Multiplier m) { return m.value < 0x7FFF8000 ? (m.value + (1 << 15)) >> 16 : 0x7FFF; }

/// TFLite's quantized hard swish, with 16-bit intermediates: x on the output's scale times a gate in [0, 1] that is
/// (x + 3) / 6, both rounded as there.
struct QuantizedHardSwish {
  int32_t in_zero_point;
  int32_t out_zero_point;
  kernels::Multiplier output;
  kernels::Multiplier gate;

  int64_t operator()(int32_t v) const {
    // Seven more bits fill int16.
    const int32_t x = (v - in_zero_point) * 128;
    int32_t g = x;
    if (gate.shift > 0) g = saturate_i16(int64_t{g} * (int64_t{1} << (gate.shift - 1)));
    g = high_mul_i16(g, narrow_factor(gate));
    if (gate.shift > 0) g = saturate_i16(int64_t{g} * 2);
    if (gate.shift < 0) g = kernels::rounding_divide_by_pot(g, -gate.shift);
    g = (g + (1 << 15)) >> 1;
    // Truncation here cancels the bias of the roundings above.
    const int32_t product = g * high_mul_i16(x, narrow_factor(output)) / (1 << 15);
    return int64_t{out_zero_point} + kernels::rounding_divide_by_pot(product, -output.shift);
  }
};

std::unique_ptr<Kernel> prepare_hard_swish(PrepareContext& c) {
  if (!is_8bit(c.input(0).dtype())) return unary_float_kernel(c, UnaryF32::kHardSwish);
  const Affine in = affine(c.input(0));
  const Affine out = affine(c.output(0));
  const float fine_scale = in.scale * (1.0F / 128.0F);
  const auto output = kernels::quantize_multiplier(static_cast<double>(fine_scale / out.scale));
  // 3.0 is 32768 on the gate's scale.
  const auto gate = kernels::quantize_multiplier(static_cast<double>(fine_scale / (3.0F / 32768.0F)));
  if (output.shift > 0) {
    // Outside what the fixed-point form can do; TFLite refuses it.
    return real_lut_kernel(c, [](float v) { return v * std::clamp(v + 3.0F, 0.0F, 6.0F) / 6.0F; });
  }
  return level_kernel(c, QuantizedHardSwish{in.zero_point, out.zero_point, output, gate});
}

// LOGISTIC, TANH.

void infer_sigmoid(InferContext& c) {
  infer_relu(c);
  if (c.input(0).dtype() != DType::kInt16) return;
  const float scale = affine(c.output(0)).scale;
  c.require(std::abs(scale * 32768.0F - 1.0F) < 1e-3F, "the int16 output has scale {}, expected 1/32768", scale);
}

std::unique_ptr<Kernel> prepare_logistic(PrepareContext& c) {
  if (is_8bit(c.input(0).dtype())) {
    return real_lut_kernel(c, [](float v) { return 1.0F / (1.0F + std::exp(-v)); });
  }
  if (c.input(0).dtype() == DType::kInt16) {
    const kernels::SigmoidI16 sigmoid(affine(c.input(0)).scale);
    return unary_kernel<int16_t>([sigmoid](int16_t v) { return sigmoid.logistic(v); }, kHeavyCost);
  }
  return unary_float_kernel(c, UnaryF32::kLogistic, 0.0F, 0.0F, kHeavyCost);
}

std::unique_ptr<Kernel> prepare_tanh(PrepareContext& c) {
  if (is_8bit(c.input(0).dtype())) return real_lut_kernel(c, [](float v) { return std::tanh(v); });
  if (c.input(0).dtype() == DType::kInt16) {
    const kernels::SigmoidI16 sigmoid(affine(c.input(0)).scale);
    return unary_kernel<int16_t>([sigmoid](int16_t v) { return sigmoid.tanh(v); }, kHeavyCost);
  }
  return unary_float_kernel(c, UnaryF32::kTanh, 0.0F, 0.0F, kHeavyCost);
}

}  // namespace

void register_activation(Registry& registry) {
  constexpr std::string_view kAll = "f32 f16 bf16 i8 u8 i16";
  add_ops(
      registry, 1, Sharing::kInPlace,
      {
          {.id = op::kRelu,
           .max_version = 3,
           .infer = infer_relu,
           .prepare = prepare_relu<Clamp::kRelu>,
           .elementwise = true,
           .activation = ir::Activation::kRelu,
           .quantize = free_rule({.int8 = 2, .int16 = 3}),
           .types = kAll},
          {.id = op::kRelu6,
           .max_version = 3,
           .infer = infer_relu,
           .prepare = prepare_relu<Clamp::kRelu6>,
           .elementwise = true,
           .activation = ir::Activation::kRelu6,
           .quantize = free_rule({.int8 = 2, .int16 = 3}),
           .types = kAll},
          {.id = op::kReluN1To1,
           .infer = infer_relu,
           .prepare = prepare_relu<Clamp::kReluN1To1>,
           .elementwise = true,
           .activation = ir::Activation::kReluN1To1,
           .quantize = free_rule({.int8 = 1}),
           .types = kAll},
          {.id = op::kRelu0To1,
           .infer = infer_relu,
           .prepare = prepare_relu<Clamp::kRelu0To1>,
           .elementwise = true,
           .quantize = free_rule({.int8 = 1}),
           .types = kAll},
          {.id = op::kLeakyRelu,
           .max_version = 2,
           .options = builtin_options(75),
           .make_attributes = make_attributes<LeakyReluAttributes>,
           .infer = infer_leaky_relu,
           .prepare = prepare_leaky_relu,
           .elementwise = true,
           .quantize = free_rule({.int8 = 1, .int16 = 2}),
           .types = kAll},
          {.id = op::kElu,
           .infer = infer_elu,
           .prepare = prepare_elu,
           .elementwise = true,
           .quantize = free_rule({.int8 = 1}),
           .types = "f32 f16 bf16 i8"},
          {.id = op::kGelu,
           .max_version = 3,
           .options = builtin_options(116),
           .make_attributes = make_attributes<GeluAttributes>,
           .infer = infer_gelu,
           .prepare = prepare_gelu,
           .elementwise = true,
           .quantize = free_rule({.int8 = 2, .int16 = 3}),
           .types = kAll},
          {.id = op::kHardSwish,
           .options = builtin_options(91),
           .infer = infer_hard_swish,
           .prepare = prepare_hard_swish,
           .elementwise = true,
           .quantize = free_rule({.int8 = 1}),
           .types = "f32 f16 bf16 i8 u8"},
          {.id = op::kLogistic,
           .max_version = 3,
           .infer = infer_sigmoid,
           .prepare = prepare_logistic,
           .elementwise = true,
           .quantize = fixed_rule({.int8 = 2, .int16 = 3}, {.int8 = {1.0F / 256, -128}, .int16 = {1.0F / 32768, 0}}),
           .types = kAll},
          {.id = op::kTanh,
           .max_version = 3,
           .infer = infer_sigmoid,
           .prepare = prepare_tanh,
           .elementwise = true,
           .quantize = fixed_rule({.int8 = 2, .int16 = 3}, {.int8 = {1.0F / 128, 0}, .int16 = {1.0F / 32768, 0}}),
           .types = kAll},
      },
      "f32");
  add_ops(registry, 2, Sharing::kInPlace,
          {{.id = op::kPrelu,
            .infer = infer_prelu,
            .prepare = prepare_prelu,
            .quantize = with_symmetric_input(free_rule({.int8 = 1}), 1),
            .types = "f32 f16 bf16 i8 u8 i16xi8"}},
          "f32");
}

}  // namespace leadline::ops
