// SPDX-License-Identifier: Apache-2.0
// ADD, SUB, MUL, DIV, SQUARED_DIFFERENCE and their StableHLO twins: broadcasting, fused activations, TFLite's
// fixed-point arithmetic for quantized types.
#include "ops/arithmetic.h"

#include <cmath>
#include <complex>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>

#include "kernels/elementwise/binary_f32.h"
#include "kernels/elementwise/quantized.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace leadline::ops {
namespace {

using kernels::BinaryF32;
using kernels::quantize_multiplier;

/// A fused activation's bounds in T; integers without a bound have the type's own.
template <typename T>
std::pair<T, T> bounds(const OpContext& c, ir::Activation activation) {
  const auto [lo, hi] = activation_range(c, activation);
  if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    const T low = std::isinf(lo) ? Limits::min() : (lo < 0.0F && !Limits::is_signed ? T{0} : static_cast<T>(lo));
    return {low, std::isinf(hi) ? Limits::max() : static_cast<T>(hi)};
  } else {
    return {static_cast<T>(lo), static_cast<T>(hi)};
  }
}

/// NaN passes.
template <typename T>
T clamp_to(T value, T lo, T hi) {
  const T raised = value < lo ? lo : value;
  return raised > hi ? hi : raised;
}

std::unique_ptr<Kernel> float_binary_kernel(const OpContext& c, BinaryF32 op, ir::Activation activation) {
  const auto [lo, hi] = activation_range(c, activation);
  const kernels::BinaryRowF32 row = kernels::binary_row_f32(op);
  return binary_row_kernel<float>(
      c, [row, lo = lo, hi = hi](const float* a, int64_t a_step, const float* b, int64_t b_step, float* out,
                                 int64_t count) { row(a, a_step, b, b_step, out, count, lo, hi); });
}

/// clamp(f(a, b)) in T's own arithmetic.
template <typename T, typename F>
std::unique_ptr<Kernel> plain_kernel(const OpContext& c, ir::Activation activation, F f) {
  using Value = Compute<T>;
  const auto [lo, hi] = bounds<Value>(c, activation);
  return binary_kernel<T, T>(
      c, [f, lo = lo, hi = hi](Value a, Value b) { return clamp_to(static_cast<Value>(f(a, b)), lo, hi); });
}

/// Any type that is not quantized, through a function template object f(a, b).
template <typename F>
std::unique_ptr<Kernel> number_kernel(const OpContext& c, BinaryF32 op, ir::Activation activation, F f) {
  const DType type = c.input(0).dtype();
  if (type == DType::kFloat32) return float_binary_kernel(c, op, activation);
  if (is_floating(type)) {
    return visit_floating(c, type, [&](auto zero) { return plain_kernel<decltype(zero)>(c, activation, f); });
  }
  return visit_numeric(c, type, [&](auto zero) -> std::unique_ptr<Kernel> {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, bool>) {
      c.fail(ErrorCode::kUnsupported, "type bool is not supported");
    } else {
      return plain_kernel<T>(c, activation, f);
    }
  });
}

/// 8-bit types are always quantized here; int16 when it has scales.
bool is_quantized(const OpContext& c) {
  const DType type = c.input(0).dtype();
  return is_8bit(type) || (type == DType::kInt16 && c.output(0).quantization().quantized());
}

/// Quantized operands have their parameters; int16 ones are symmetric where TFLite asks for it.
void require_quantization(const OpContext& c, bool symmetric_int16) {
  const auto check = [&](const Operand& operand, const char* what) {
    if (symmetric_int16 && c.input(0).dtype() == DType::kInt16) {
      require_symmetric(c, operand, what);
    } else {
      c.require_quantized(operand, what);
    }
  };
  check(c.input(0), "input 0");
  check(c.input(1), "input 1");
  c.require_quantized(c.output(0), "output");
  if (symmetric_int16 && c.output(0).dtype() == DType::kInt16) require_symmetric(c, c.output(0), "output");
}

// ADD, SUB.

/// The exponent when `scale` is a power of two within TFLite's tolerance.
std::optional<int> power_of_two(float scale) {
  const float exponent = std::log2(scale);
  const float rounded = std::round(exponent);
  if (std::abs(exponent - rounded) >= 1e-3F) return std::nullopt;
  return static_cast<int>(rounded);
}

/// int16 with scales that are powers of two: one operand already has the output's scale, the other is shifted.
struct ShiftedAdd {
  int a_shift = 0;
  int b_shift = 0;
  bool subtract = false;
  int32_t lo = 0;
  int32_t hi = 0;

  int16_t operator()(int16_t a, int16_t b) const {
    const int32_t x = kernels::rounding_divide_by_pot(a, a_shift);
    const int32_t y = kernels::rounding_divide_by_pot(b, b_shift);
    return static_cast<int16_t>(std::clamp(subtract ? x - y : x + y, lo, hi));
  }
};

std::optional<ShiftedAdd> shifted_add(const OpContext& c, bool subtract) {
  const auto a = power_of_two(affine(c.input(0)).scale);
  const auto b = power_of_two(affine(c.input(1)).scale);
  const auto out = power_of_two(affine(c.output(0)).scale);
  if (!a || !b || !out || *a > *out || *b > *out || (*a != *out && *b != *out)) return std::nullopt;
  const auto& attributes = c.attributes<AddAttributes>();
  const auto [lo, hi] = quantized_activation_range(c, attributes.activation, c.output(0));
  return ShiftedAdd{std::min(*out - *a, 31), std::min(*out - *b, 31), subtract, lo, hi};
}

kernels::QuantizedAdd quantized_add(const OpContext& c, bool subtract) {
  const kernels::Affine a = affine(c.input(0));
  const kernels::Affine b = affine(c.input(1));
  const kernels::Affine out = affine(c.output(0));
  kernels::QuantizedAdd op;
  op.a_zero_point = a.zero_point;
  op.b_zero_point = b.zero_point;
  op.zero_point = out.zero_point;
  op.subtract = subtract;
  // TFLite's choice: as much precision as leaves the sum inside 32 bits.
  op.left_shift = c.input(0).dtype() == DType::kInt16 ? 15 : 20;
  const double twice_max = 2.0 * std::max(a.scale, b.scale);
  op.a = quantize_multiplier(a.scale / twice_max);
  op.b = quantize_multiplier(b.scale / twice_max);
  op.output = quantize_multiplier(twice_max / (static_cast<double>(1 << op.left_shift) * out.scale));
  std::tie(op.lo, op.hi) = quantized_activation_range(c, c.attributes<AddAttributes>().activation, c.output(0));
  return op;
}

/// XNNPACK's form of a sum, where its limits allow it: both inputs' scales within 2^-10 to 2^8 of the output's.
std::optional<kernels::DirectAdd> direct_add(const OpContext& c, const kernels::QuantizedAdd& plain) {
  const float out_scale = c.output(0).quantization().scale0();
  const float a = c.input(0).quantization().scale0() / out_scale;
  const float b = c.input(1).quantization().scale0() / out_scale;
  const auto [least, most] = std::minmax(a, b);
  if (!(least >= 0x1.0p-10F && most < 0x1.0p+8F)) return std::nullopt;
  kernels::DirectAdd op;
  op.shift = 20 - std::ilogb(most);  // the larger factor gets 21 bits
  op.a = static_cast<int32_t>(std::lrint(std::ldexp(a, op.shift)));
  op.b = static_cast<int32_t>(std::lrint(std::ldexp(b, op.shift))) * (plain.subtract ? -1 : 1);
  const int64_t half = int64_t{1} << (op.shift - 1);
  op.bias = static_cast<int32_t>(half - int64_t{op.a} * plain.a_zero_point - int64_t{op.b} * plain.b_zero_point);
  op.zero_point = plain.zero_point;
  op.lo = plain.lo;
  op.hi = plain.hi;
  return op;
}

/// XNNPACK's form of a product, for factors within 2^-16 to 2^8.
std::optional<kernels::DirectMul> direct_mul(const OpContext& c, const kernels::QuantizedMul& plain) {
  const float scale =
      c.input(0).quantization().scale0() * c.input(1).quantization().scale0() / c.output(0).quantization().scale0();
  if (!(scale >= 0x1.0p-16F && scale < 0x1.0p+8F)) return std::nullopt;
  return kernels::DirectMul{plain.a_zero_point, plain.b_zero_point, plain.zero_point, scale, plain.lo, plain.hi};
}

template <typename T, typename Op>
std::unique_ptr<Kernel> quantized_row_kernel(const OpContext& c, const Op& op) {
  return binary_row_kernel<T>(
      c,
      [op, row = kernels::quantized_row<T, Op>()](const T* a, int64_t a_step, const T* b, int64_t b_step, T* out,
                                                  int64_t count) { row(op, a, a_step, b, b_step, out, count); },
      kHeavyCost);
}

/// `direct` where there is one, else `plain`, for int8 and uint8.
template <typename Plain, typename Direct>
std::unique_ptr<Kernel> eight_bit_kernel(const OpContext& c, const Plain& plain, const std::optional<Direct>& direct) {
  if (c.input(0).dtype() == DType::kInt8) {
    return direct ? quantized_row_kernel<int8_t>(c, *direct) : quantized_row_kernel<int8_t>(c, plain);
  }
  return direct ? quantized_row_kernel<uint8_t>(c, *direct) : quantized_row_kernel<uint8_t>(c, plain);
}

/// A sum whose inputs differ from the output by more than the fixed-point form resolves: a step of the output is less
/// than 2^-20 (int16: 2^-15) of an input's. Nearly all results saturate; those that do not are right.
template <typename T>
std::unique_ptr<Kernel> coarse_sum(const OpContext& c, const kernels::QuantizedAdd& op) {
  const double out = c.output(0).quantization().scale0();
  const double a = c.input(0).quantization().scale0() / out;
  const double b = c.input(1).quantization().scale0() / out * (op.subtract ? -1.0 : 1.0);
  return binary_kernel<T, T>(
      c,
      [op, a, b](T x, T y) {
        const double sum = (x - op.a_zero_point) * a + (y - op.b_zero_point) * b;
        return std::clamp<double>(std::round(sum) + op.zero_point, op.lo, op.hi);
      },
      kHeavyCost);
}

std::unique_ptr<Kernel> coarse_sum(const OpContext& c, const kernels::QuantizedAdd& op) {
  switch (c.input(0).dtype()) {
    case DType::kInt8:
      return coarse_sum<int8_t>(c, op);
    case DType::kUInt8:
      return coarse_sum<uint8_t>(c, op);
    default:
      return coarse_sum<int16_t>(c, op);
  }
}

void infer_add(InferContext& c) {
  infer_binary(c, {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8, DType::kUInt8, DType::kInt16,
                   DType::kInt32, DType::kUInt32, DType::kInt64});
  activation_range(c, c.attributes<AddAttributes>().activation);
  if (is_quantized(c)) require_quantization(c, true);
}

template <bool kSubtract>
std::unique_ptr<Kernel> prepare_add(PrepareContext& c) {
  const auto& attributes = c.attributes<AddAttributes>();
  if (!is_quantized(c)) {
    return number_kernel(c, kSubtract ? BinaryF32::kSub : BinaryF32::kAdd, attributes.activation,
                         [](auto a, auto b) { return kSubtract ? wrapping_sub(a, b) : wrapping_add(a, b); });
  }
  const kernels::QuantizedAdd op = quantized_add(c, kSubtract);
  if (op.output.shift > 0) return coarse_sum(c, op);
  if (is_8bit(c.input(0).dtype())) return eight_bit_kernel(c, op, direct_add(c, op));
  if (attributes.pot_scale_int16) {
    if (const auto shifted = shifted_add(c, kSubtract)) return binary_kernel<int16_t, int16_t>(c, *shifted);
  }
  return quantized_row_kernel<int16_t>(c, op);
}

// MUL.

void infer_mul(InferContext& c) {
  const DType type = c.input(0).dtype();
  const auto& attributes = c.attributes<MulAttributes>();
  activation_range(c, attributes.activation);
  if (type == DType::kInt16 && is_8bit(c.output(0).dtype())) {
    infer_binary(c, {DType::kInt16}, c.output(0).dtype());
    c.require(c.input(0).shape == c.input(1).shape, "shapes {} and {} differ; int16 to 8 bits does not broadcast",
              c.input(0).shape.to_string(), c.input(1).shape.to_string());
    c.require_quantized(c.output(0), "output");
    return;
  }
  infer_binary(c, {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8, DType::kUInt8, DType::kInt16,
                   DType::kInt32, DType::kUInt32, DType::kInt64, DType::kComplex64});
  c.require(type != DType::kComplex64 || attributes.activation == ir::Activation::kNone,
            "complex numbers have no fused activation");
  if (is_quantized(c)) require_quantization(c, true);
}

/// Both inputs stand for [-1, 1) with 15 fractional bits, the output for the same with 7.
template <typename T>
std::unique_ptr<Kernel> narrowing_mul(const OpContext& c) {
  const auto [lo, hi] = quantized_activation_range(c, c.attributes<MulAttributes>().activation, c.output(0));
  const int32_t zero_point = affine(c.output(0)).zero_point;
  return binary_kernel<int16_t, T>(c, [lo = lo, hi = hi, zero_point](int16_t a, int16_t b) {
    const int32_t product = std::min((int32_t{a} * b + (1 << 14)) >> 15, 32767);
    return std::clamp(kernels::rounding_divide_by_pot(product, 8) + zero_point, lo, hi);
  });
}

std::unique_ptr<Kernel> prepare_mul(PrepareContext& c) {
  const auto& attributes = c.attributes<MulAttributes>();
  const DType type = c.input(0).dtype();
  if (type == DType::kInt16 && is_8bit(c.output(0).dtype())) {
    return c.output(0).dtype() == DType::kInt8 ? narrowing_mul<int8_t>(c) : narrowing_mul<uint8_t>(c);
  }
  if (type == DType::kComplex64) {
    using Complex = std::complex<float>;
    return binary_kernel<Complex, Complex>(c, [](Complex a, Complex b) { return a * b; });
  }
  if (!is_quantized(c)) {
    return number_kernel(c, BinaryF32::kMul, attributes.activation, [](auto a, auto b) { return wrapping_mul(a, b); });
  }
  const kernels::Affine a = affine(c.input(0));
  const kernels::Affine b = affine(c.input(1));
  const kernels::Affine out = affine(c.output(0));
  kernels::QuantizedMul op;
  op.a_zero_point = a.zero_point;
  op.b_zero_point = b.zero_point;
  op.zero_point = out.zero_point;
  op.output = quantize_multiplier(kernels::scale_ratio(a.scale, b.scale, out.scale));
  std::tie(op.lo, op.hi) = quantized_activation_range(c, attributes.activation, c.output(0));
  if (is_8bit(type)) return eight_bit_kernel(c, op, direct_mul(c, op));
  return quantized_row_kernel<int16_t>(c, op);
}

// DIV.

void infer_div(InferContext& c) {
  infer_binary(c, {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8, DType::kUInt8, DType::kInt16,
                   DType::kInt32});
  activation_range(c, c.attributes<MulAttributes>().activation);
  if (!is_floating(c.input(0).dtype()) && c.input(0).dtype() != DType::kInt32) require_quantization(c, false);
}

/// Checks that no divisor is `zero`, then runs `kernel`.
template <typename T>
std::unique_ptr<Kernel> checked_division(std::unique_ptr<Kernel> kernel, int32_t zero) {
  return make_kernel([kernel = std::move(kernel), zero](RunContext& c) {
    const T* divisors = c.input(1).as<T>();
    const int64_t count = c.input(1).elements();
    int64_t zeros = 0;
    for (int64_t i = 0; i < count; ++i) zeros += divisors[i] == zero ? 1 : 0;
    c.require(zeros == 0, "division by zero: input 1 has {} zeros among {} values", zeros, count);
    kernel->run(c);
  });
}

/// Within one step of TFLite's reciprocal in fixed point, and closer to the quotient.
template <typename T>
std::unique_ptr<Kernel> quantized_div(const OpContext& c) {
  const kernels::Affine a = affine(c.input(0));
  const kernels::Affine b = affine(c.input(1));
  const kernels::Affine out = affine(c.output(0));
  const auto [lo, hi] = quantized_activation_range(c, c.attributes<MulAttributes>().activation, c.output(0));
  const double factor = double{a.scale} / (double{b.scale} * out.scale);
  auto kernel = binary_kernel<T, T>(
      c,
      [a, b, out, factor, lo = lo, hi = hi](T x, T y) {
        const double quotient = (x - a.zero_point) * factor / (y - b.zero_point);
        return std::clamp<double>(std::round(quotient) + out.zero_point, lo, hi);
      },
      kHeavyCost);
  return checked_division<T>(std::move(kernel), b.zero_point);
}

std::unique_ptr<Kernel> prepare_div(PrepareContext& c) {
  const auto& attributes = c.attributes<MulAttributes>();
  switch (c.input(0).dtype()) {
    case DType::kInt8:
      return quantized_div<int8_t>(c);
    case DType::kUInt8:
      return quantized_div<uint8_t>(c);
    case DType::kInt16:
      return quantized_div<int16_t>(c);
    case DType::kInt32: {
      // INT32_MIN / -1 wraps.
      auto kernel = plain_kernel<int32_t>(c, attributes.activation,
                                          [](int32_t a, int32_t b) { return b == -1 ? wrapping_sub(0, a) : a / b; });
      return checked_division<int32_t>(std::move(kernel), 0);
    }
    case DType::kFloat32:
      return float_binary_kernel(c, BinaryF32::kDiv, attributes.activation);
    case DType::kFloat16:
      return plain_kernel<kernels::Half>(c, attributes.activation, [](float a, float b) { return a / b; });
    default:
      return plain_kernel<kernels::BFloat16>(c, attributes.activation, [](float a, float b) { return a / b; });
  }
}

// SQUARED_DIFFERENCE.

void infer_squared_difference(InferContext& c) {
  infer_binary(c, {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8, DType::kInt32, DType::kInt64});
  if (c.input(0).dtype() == DType::kInt8) require_quantization(c, false);
}

std::unique_ptr<Kernel> quantized_squared_difference(const OpContext& c) {
  const kernels::Affine a = affine(c.input(0));
  const kernels::Affine b = affine(c.input(1));
  const kernels::Affine out = affine(c.output(0));
  // TFLite's shift: 255^2 << (2 * 7) stays inside 32 bits.
  constexpr int kShift = 7;
  const double twice_max = 2.0 * std::max(a.scale, b.scale);
  const kernels::Multiplier scale_a = quantize_multiplier(a.scale / twice_max);
  const kernels::Multiplier scale_b = quantize_multiplier(b.scale / twice_max);
  const kernels::Multiplier scale_out =
      quantize_multiplier(twice_max * twice_max / (static_cast<double>(1 << (2 * kShift)) * out.scale));
  if (scale_out.shift > 0) {  // a step of the output is less than what the shift resolves
    const double factor = 1.0 / out.scale;
    return binary_kernel<int8_t, int8_t>(
        c,
        [=](int8_t x, int8_t y) {
          const double difference = (x - a.zero_point) * double{a.scale} - (y - b.zero_point) * double{b.scale};
          return std::clamp<double>(std::round(difference * difference * factor) + out.zero_point, -128, 127);
        },
        kHeavyCost);
  }
  return binary_kernel<int8_t, int8_t>(
      c,
      [=](int8_t x, int8_t y) {
        const int32_t difference = kernels::multiply((x - a.zero_point) * (1 << kShift), scale_a) -
                                   kernels::multiply((y - b.zero_point) * (1 << kShift), scale_b);
        const int64_t level = int64_t{out.zero_point} + kernels::multiply(difference * difference, scale_out);
        return std::clamp<int64_t>(level, -128, 127);
      },
      kHeavyCost);
}

std::unique_ptr<Kernel> prepare_squared_difference(PrepareContext& c) {
  if (c.input(0).dtype() == DType::kInt8) return quantized_squared_difference(c);
  return number_kernel(c, BinaryF32::kSquaredDifference, ir::Activation::kNone, [](auto a, auto b) {
    const auto difference = wrapping_sub(a, b);
    return wrapping_mul(difference, difference);
  });
}

// StableHLO: the same arithmetic on plain numbers of equal shapes. A sum of bools is "or", a product is "and".

std::unique_ptr<Kernel> prepare_stablehlo_add(PrepareContext& c) {
  if (c.input(0).dtype() == DType::kBool) {
    return binary_kernel<uint8_t, uint8_t>(c, [](uint8_t a, uint8_t b) { return (a | b) != 0; });
  }
  return number_kernel(c, BinaryF32::kAdd, ir::Activation::kNone, [](auto a, auto b) { return wrapping_add(a, b); });
}

std::unique_ptr<Kernel> prepare_stablehlo_multiply(PrepareContext& c) {
  if (c.input(0).dtype() == DType::kBool) {
    return binary_kernel<uint8_t, uint8_t>(c, [](uint8_t a, uint8_t b) { return (a != 0) & (b != 0); });
  }
  return number_kernel(c, BinaryF32::kMul, ir::Activation::kNone, [](auto a, auto b) { return wrapping_mul(a, b); });
}

}  // namespace

void register_arithmetic(Registry& registry) {
  constexpr std::string_view kNumbers = "f32 f16 bf16 f64 i8 u8 i16 u16 i32 u32 i64 u64 bool";
  constexpr auto kAdd = make_attributes<AddAttributes>;
  constexpr auto kMul = make_attributes<MulAttributes>;
  add_ops(registry, 2, Sharing::kInPlace,
          {
              {.id = op::kAdd,
               .max_version = 6,
               .options = builtin_options(11),
               .make_attributes = kAdd,
               .infer = infer_add,
               .prepare = prepare_add<false>,
               .elementwise = true,
               .fuses = kFusesRelus,
               .quantize = free_rule({.int8 = 2, .int16 = 3}),
               .types = "f32 f16 bf16 i8 u8 i16 i32 u32 i64"},
              {.id = op::kSub,
               .max_version = 5,
               .options = builtin_options(28),
               .make_attributes = kAdd,
               .infer = infer_add,
               .prepare = prepare_add<true>,
               .elementwise = true,
               .fuses = kFusesRelus,
               .quantize = free_rule({.int8 = 2, .int16 = 5}),
               .types = "f32 f16 bf16 i8 u8 i16 i32 u32 i64"},
              {.id = op::kMul,
               .max_version = 8,
               .options = builtin_options(21),
               .make_attributes = kMul,
               .infer = infer_mul,
               .prepare = prepare_mul,
               .elementwise = true,
               .fuses = kFusesRelus,
               .quantize = free_rule({.int8 = 2, .int16 = 4}),
               .types = "f32 f16 bf16 i8 u8 i16 i16-to-8 i32 u32 i64 c64"},
          },
          "f32 i8 u8");
  add_ops(registry, 2, Sharing::kInPlace,
          {
              {.id = op::kDiv,
               .max_version = 2,
               .options = builtin_options(29),
               .make_attributes = kMul,
               .infer = infer_div,
               .prepare = prepare_div,
               .elementwise = true,
               .fuses = kFusesRelus,
               .quantize = free_rule({.int8 = 2}),
               .types = "f32 f16 bf16 i8 u8 i16 i32"},
              {.id = op::kSquaredDifference,
               .max_version = 2,
               .options = builtin_options(76),
               .infer = infer_squared_difference,
               .prepare = prepare_squared_difference,
               .quantize = free_rule({.int8 = 2}),
               .types = "f32 f16 bf16 i8 i32 i64"},
              {.id = op::kStablehloAdd,
               .infer = infer_binary_stablehlo,
               .prepare = prepare_stablehlo_add,
               .types = kNumbers},
              {.id = op::kStablehloMultiply,
               .infer = infer_binary_stablehlo,
               .prepare = prepare_stablehlo_multiply,
               .types = kNumbers},
          },
          "f32");
}

}  // namespace leadline::ops
