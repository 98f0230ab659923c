// SPDX-License-Identifier: Apache-2.0
// ABS NEG EXP LOG SQRT RSQRT SQUARE SIN COS FLOOR CEIL ROUND SIGN.
// Quantized forms are tables: the function of each of the 256 values, or TFLite's interpolated table for int16.
#include <cmath>
#include <limits>

#include "kernels/quant/fixed_point.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace leadline::ops {
namespace {

using kernels::Affine;
using kernels::UnaryF32;

template <typename T>
int32_t clamp_level(int64_t level) {
  return static_cast<int32_t>(std::clamp<int64_t>(level, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

/// A function int32_t -> int32_t of the stored value: by table for 8 bits, else one by one.
template <typename T, typename F>
std::unique_ptr<Kernel> stored_level_kernel(const F& f) {
  if constexpr (sizeof(T) == 1) {
    return lut8_kernel(kernels::make_lut8<T>(f));
  } else {
    return unary_kernel<T>(f, kHeavyCost);
  }
}

/// body(T) for the quantized type of input 0.
template <typename Body>
auto visit_quantized(const OpContext& c, const Body& body) {
  switch (c.input(0).dtype()) {
    case DType::kInt8:
      return body(int8_t{});
    case DType::kUInt8:
      return body(uint8_t{});
    default:
      return body(int16_t{});
  }
}

// ABS.

bool abs_is_quantized(const OpContext& c) {
  return is_8bit(c.input(0).dtype()) || (c.input(0).dtype() == DType::kInt16 && c.input(0).quantization().quantized());
}

void infer_abs(InferContext& c) {
  infer_unary(c, {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8, DType::kUInt8, DType::kInt16,
                  DType::kInt32, DType::kInt64});
  if (abs_is_quantized(c)) require_quantized_pair(c);
}

template <typename T>
T wrapping_abs(T value) {
  return value < 0 ? wrapping_sub(T{0}, value) : value;
}

std::unique_ptr<Kernel> prepare_abs(PrepareContext& c) {
  if (abs_is_quantized(c)) {
    const Affine in = affine(c.input(0));
    const Affine out = affine(c.output(0));
    const bool rescale = in.scale != out.scale;
    const auto factor = kernels::quantize_multiplier(static_cast<double>(in.scale / out.scale));
    return visit_quantized(c, [&](auto zero) {
      using T = decltype(zero);
      return stored_level_kernel<T>([=](int32_t v) {
        const int32_t magnitude = std::abs(v - in.zero_point);
        const int32_t scaled = rescale ? kernels::multiply(magnitude, factor) : magnitude;
        return clamp_level<T>(int64_t{scaled} + out.zero_point);
      });
    });
  }
  switch (c.input(0).dtype()) {
    case DType::kInt16:
      return unary_kernel<int16_t>(wrapping_abs<int16_t>);
    case DType::kInt32:
      return unary_kernel<int32_t>(wrapping_abs<int32_t>);
    case DType::kInt64:
      return unary_kernel<int64_t>(wrapping_abs<int64_t>);
    default:
      return unary_float_kernel(c, UnaryF32::kAbs);
  }
}

// NEG: TFLite negates the stored integers.

void infer_neg(InferContext& c) {
  infer_unary(c, {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8, DType::kInt16, DType::kInt32,
                  DType::kInt64});
}

std::unique_ptr<Kernel> prepare_neg(PrepareContext& c) {
  const auto integers = [](auto zero) {
    using T = decltype(zero);
    return unary_kernel<T>([](T v) { return wrapping_sub(T{0}, v); });
  };
  switch (c.input(0).dtype()) {
    case DType::kInt8:
      return integers(int8_t{});
    case DType::kInt16:
      return integers(int16_t{});
    case DType::kInt32:
      return integers(int32_t{});
    case DType::kInt64:
      return integers(int64_t{});
    default:
      return unary_float_kernel(c, UnaryF32::kNeg);
  }
}

// EXP, LOG, SQRT, RSQRT.

void infer_real(InferContext& c) {
  infer_unary(c, {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kInt8, DType::kInt16});
  if (is_small_integer(c.input(0).dtype())) require_quantized_pair(c);
}

std::unique_ptr<Kernel> prepare_exp(PrepareContext& c) {
  if (is_small_integer(c.input(0).dtype())) return real_lut_kernel(c, [](float v) { return std::exp(v); });
  return unary_float_kernel(c, UnaryF32::kExp, 0.0F, 0.0F, kHeavyCost);
}

template <typename F>
std::unique_ptr<Kernel> float_function(const OpContext& c, F f) {
  return visit_floating(c, c.input(0).dtype(), [&](auto zero) { return unary_kernel<decltype(zero)>(f, kHeavyCost); });
}

std::unique_ptr<Kernel> prepare_log(PrepareContext& c) {
  if (!is_small_integer(c.input(0).dtype())) return float_function(c, [](auto v) { return std::log(v); });
  const Affine out = affine(c.output(0));
  const int32_t lowest = level_range(c.input(0).dtype()).first;
  // Where there is no logarithm TFLite returns the smallest number the output can hold.
  const float smallest = static_cast<float>(lowest - out.zero_point) * out.scale;
  return real_lut_kernel(c, [smallest](float v) { return v <= 0.0F ? smallest : std::log(v); });
}

/// `kernel`, after a check that no input stands for a negative number.
template <typename T>
std::unique_ptr<Kernel> not_negative(std::unique_ptr<Kernel> kernel, int32_t zero_point) {
  return make_kernel([kernel = std::move(kernel), zero_point](RunContext& c) {
    const T* in = c.input(0).as<T>();
    const int64_t count = c.input(0).elements();
    int64_t negative = 0;
    for (int64_t i = 0; i < count; ++i) negative += in[i] < zero_point ? 1 : 0;
    c.require(negative == 0, "{} of {} inputs are negative, expected none", negative, count);
    kernel->run(c);
  });
}

std::unique_ptr<Kernel> prepare_sqrt(PrepareContext& c) {
  if (!is_small_integer(c.input(0).dtype())) return unary_float_kernel(c, UnaryF32::kSqrt);
  const Affine in = affine(c.input(0));
  const Affine out = affine(c.output(0));
  return visit_quantized(c, [&](auto zero) {
    using T = decltype(zero);
    // TFLite rounds towards zero here.
    auto kernel = stored_level_kernel<T>([=](int32_t v) {
      const float real = in.scale * static_cast<float>(std::max(v - in.zero_point, 0));
      return clamp_level<T>(int64_t{kernels::saturating_int(std::sqrt(real) / out.scale)} + out.zero_point);
    });
    return not_negative<T>(std::move(kernel), in.zero_point);
  });
}

std::unique_ptr<Kernel> prepare_rsqrt(PrepareContext& c) {
  const DType type = c.input(0).dtype();
  if (!is_small_integer(type)) return unary_float_kernel(c, UnaryF32::kRsqrt);
  const Affine in = affine(c.input(0));
  const Affine out = affine(c.output(0));
  if (type == DType::kInt16) {
    const float largest = 32767.0F * out.scale;
    auto kernel = real_lut_kernel(c, [largest](float v) { return v <= 0.0F ? largest : 1.0F / std::sqrt(v); });
    return not_negative<int16_t>(std::move(kernel), in.zero_point);
  }
  const double factor = 1.0 / (std::sqrt(static_cast<double>(in.scale)) * out.scale);
  auto kernel = stored_level_kernel<int8_t>([=](int32_t v) {
    if (v <= in.zero_point) return int32_t{127};
    const double level = std::round(factor / std::sqrt(static_cast<double>(v - in.zero_point)));
    return clamp_level<int8_t>(int64_t{kernels::saturating_int(level)} + out.zero_point);
  });
  return not_negative<int8_t>(std::move(kernel), in.zero_point);
}

// Float only.

void infer_float(InferContext& c) { infer_unary(c, {DType::kFloat32, DType::kFloat16, DType::kBFloat16}); }

template <UnaryF32 kOp>
std::unique_ptr<Kernel> prepare_float(PrepareContext& c) {
  return unary_float_kernel(c, kOp);
}

std::unique_ptr<Kernel> prepare_sin(PrepareContext& c) {
  return float_function(c, [](auto v) { return std::sin(v); });
}

std::unique_ptr<Kernel> prepare_cos(PrepareContext& c) {
  return float_function(c, [](auto v) { return std::cos(v); });
}

// SIGN.

void infer_sign(InferContext& c) {
  infer_unary(c, {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt32, DType::kInt64});
}

std::unique_ptr<Kernel> prepare_sign(PrepareContext& c) {
  const auto sign = [](auto v) {
    using T = decltype(v);
    if (v != v) return v;
    return static_cast<T>((v > T{0} ? 1 : 0) - (v < T{0} ? 1 : 0));
  };
  switch (c.input(0).dtype()) {
    case DType::kInt32:
      return unary_kernel<int32_t>(sign);
    case DType::kInt64:
      return unary_kernel<int64_t>(sign);
    case DType::kFloat64:
      return unary_kernel<double>(sign);
    default:
      return unary_float_kernel(c, UnaryF32::kSign);
  }
}

}  // namespace

void register_unary(Registry& registry) {
  constexpr std::string_view kFloats = "f32 f16 bf16";
  constexpr std::string_view kReal = "f32 f16 bf16 i8 i16";
  add_ops(registry, 1, Sharing::kInPlace,
          {
              {.id = op::kAbs,
               .max_version = 5,
               .options = builtin_options(78),
               .infer = infer_abs,
               .prepare = prepare_abs,
               .elementwise = true,
               .quantize = free_rule({.int8 = 2, .int16 = 3}),
               .types = "f32 f16 bf16 i8 u8 i16 i32 i64"},
              {.id = op::kNeg,
               .options = builtin_options(42),
               .infer = infer_neg,
               .prepare = prepare_neg,
               .elementwise = true,
               .types = "f32 f16 bf16 i8 i16 i32 i64"},
              {.id = op::kExp,
               .max_version = 2,
               .options = builtin_options(33),
               .infer = infer_real,
               .prepare = prepare_exp,
               .elementwise = true,
               .quantize = free_rule({.int8 = 2, .int16 = 2}),
               .types = kReal},
              {.id = op::kSqrt,
               .max_version = 2,
               .infer = infer_real,
               .prepare = prepare_sqrt,
               .elementwise = true,
               .quantize = free_rule({.int8 = 2, .int16 = 2}),
               .types = kReal},
              {.id = op::kRsqrt,
               .max_version = 3,
               .infer = infer_real,
               .prepare = prepare_rsqrt,
               .elementwise = true,
               .quantize = free_rule({.int8 = 2, .int16 = 3}),
               .types = kReal},
              {.id = op::kSquare,
               .options = builtin_options(66),
               .infer = infer_float,
               .prepare = prepare_float<UnaryF32::kSquare>,
               .elementwise = true,
               .types = kFloats},
              {.id = op::kFloor,
               .infer = infer_float,
               .prepare = prepare_float<UnaryF32::kFloor>,
               .elementwise = true,
               .types = kFloats},
              {.id = op::kCeil,
               .infer = infer_float,
               .prepare = prepare_float<UnaryF32::kCeil>,
               .elementwise = true,
               .types = kFloats},
              {.id = op::kRound,
               .infer = infer_float,
               .prepare = prepare_float<UnaryF32::kRound>,
               .elementwise = true,
               .types = kFloats},
              {.id = op::kSign,
               .max_version = 2,
               .options = builtin_options(123),
               .infer = infer_sign,
               .prepare = prepare_sign,
               .types = "f32 f16 bf16 f64 i32 i64"},
          },
          "f32");
  add_ops(registry, 1, Sharing::kInPlace,
          {
              {.id = op::kLog,
               .max_version = 2,
               .infer = infer_real,
               .prepare = prepare_log,
               .elementwise = true,
               .quantize = free_rule({.int8 = 2, .int16 = 2}),
               .types = kReal},
              {.id = op::kSin,
               .max_version = 2,
               .infer = infer_float,
               .prepare = prepare_sin,
               .elementwise = true,
               .types = kFloats},
              {.id = op::kCos,
               .max_version = 2,
               .options = builtin_options(84),
               .infer = infer_float,
               .prepare = prepare_cos,
               .elementwise = true,
               .types = kFloats},
          });
}

}  // namespace leadline::ops
