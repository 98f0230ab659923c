// SPDX-License-Identifier: Apache-2.0
// EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL. Quantized operands are brought to a common scale in
// fixed point first, as TFLite does. The result is bool, so it never shares memory with an operand.
#include <functional>

#include "kernels/quant/fixed_point.h"
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace {

// TFLite's kernels do not rescale int16 for the four orders, only for equality.
template <bool kEquality>
bool rescales(const OpContext& c) {
  const DType type = c.input(0).dtype();
  if (!is_8bit(type) && !(kEquality && type == DType::kInt16)) return false;
  return c.input(0).quantization().quantized();
}

template <bool kEquality>
void infer_comparison(InferContext& c) {
  if (kEquality) {
    infer_binary(c,
                 {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64, DType::kInt8, DType::kUInt8,
                  DType::kInt16, DType::kInt32, DType::kUInt32, DType::kInt64, DType::kBool, DType::kString},
                 DType::kBool);
  } else {
    infer_binary(c,
                 {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64, DType::kInt8, DType::kUInt8,
                  DType::kInt16, DType::kInt32, DType::kUInt32, DType::kInt64},
                 DType::kBool);
  }
  if (rescales<kEquality>(c)) {
    c.require_quantized(c.input(0), "input 0");
    c.require_quantized(c.input(1), "input 1");
  }
}

template <typename F>
std::unique_ptr<Kernel> prepare_strings(const OpContext& c) {
  const auto plan = kernels::plan_broadcast<2>(c.output(0).shape, {c.input(0).shape, c.input(1).shape});
  return make_kernel([plan](RunContext& run) {
    if (plan.elements == 0) return;
    const StringTensorReader a = run_strings(run, run.input(0));
    const StringTensorReader b = run_strings(run, run.input(1));
    auto* out = run.output(0).mutable_as<bool>();
    const auto row = [&](int64_t at, const std::array<int64_t, 2>& from, int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        out[at + i] = F{}(a[from[0] + i * plan.step(0)], b[from[1] + i * plan.step(1)]);
    };
    kernels::for_each_row(plan, 0, plan.elements, row);
  });
}

/// An operand's value in units that both operands share, with 8 more bits.
struct Rescale {
  int32_t zero_point;
  kernels::Multiplier factor;

  explicit Rescale(const Operand& operand)
      : zero_point(affine(operand).zero_point),
        factor(kernels::quantize_multiplier(static_cast<double>(affine(operand).scale))) {}
  int32_t operator()(int32_t value) const { return kernels::multiply((value - zero_point) * 256, factor); }
};

template <typename F, typename T>
std::unique_ptr<Kernel> rescaled_kernel(const OpContext& c, const Rescale& a, const Rescale& b, bool swapped) {
  return binary_kernel<T, bool>(c, [a, b](T x, T y) { return F{}(a(x), b(y)); }, kHeavyCost, swapped);
}

/// `kSwapped`: a > b is b < a, and needs no code of its own.
template <typename F, bool kEquality, bool kSwapped = false>
std::unique_ptr<Kernel> prepare_comparison(PrepareContext& c) {
  const DType type = c.input(0).dtype();
  if constexpr (kEquality) {
    if (type == DType::kString) return prepare_strings<F>(c);
    if (type == DType::kBool) {
      // Any byte but 0 is true, also one that is not a valid bool.
      return binary_kernel<uint8_t, bool>(c, [](uint8_t a, uint8_t b) { return F{}(a != 0, b != 0); });
    }
  }
  if (rescales<kEquality>(c)) {
    return visit_numeric(c, type, [&](auto zero) -> std::unique_ptr<Kernel> {
      using T = decltype(zero);
      if constexpr (std::is_integral_v<T> && sizeof(T) <= 2) {
        const Rescale a(c.input(kSwapped ? 1 : 0));
        const Rescale b(c.input(kSwapped ? 0 : 1));
        return rescaled_kernel<F, T>(c, a, b, kSwapped);
      } else {
        c.fail(ErrorCode::kUnsupported, "type {} is not supported", dtype_name(type));
      }
    });
  }
  const auto plain = [&](auto zero) { return binary_kernel<decltype(zero), bool>(c, F{}, kLightCost, kSwapped); };
  return is_floating(type) ? visit_floating(c, type, plain) : visit_numeric(c, type, plain);
}

}  // namespace

void register_comparison(Registry& registry) {
  constexpr std::string_view kOrdered = "f32 f16 bf16 f64 i8 u8 i16 i32 u32 i64";
  constexpr std::string_view kAll = "f32 f16 bf16 f64 i8 u8 i16 i32 u32 i64 bool string";
  add_ops(registry, 2, Sharing::kNone,
          {
              {.id = op::kEqual,
               .max_version = 5,
               .options = builtin_options(53),
               .infer = infer_comparison<true>,
               .prepare = prepare_comparison<std::equal_to<>, true>,
               .result_type = DType::kBool,
               .quantize = free_rule({.int8 = 2}),
               .types = kAll},
              {.id = op::kNotEqual,
               .max_version = 4,
               .options = builtin_options(54),
               .infer = infer_comparison<true>,
               .prepare = prepare_comparison<std::not_equal_to<>, true>,
               .result_type = DType::kBool,
               .quantize = free_rule({.int8 = 2}),
               .types = kAll},
              {.id = op::kLess,
               .max_version = 3,
               .options = builtin_options(41),
               .infer = infer_comparison<false>,
               .prepare = prepare_comparison<std::less<>, false>,
               .result_type = DType::kBool,
               .quantize = free_rule({.int8 = 2}),
               .types = kOrdered},
              {.id = op::kLessEqual,
               .max_version = 2,
               .options = builtin_options(46),
               .infer = infer_comparison<false>,
               .prepare = prepare_comparison<std::less_equal<>, false>,
               .result_type = DType::kBool,
               .quantize = free_rule({.int8 = 2}),
               .types = kOrdered},
              {.id = op::kGreater,
               .max_version = 2,
               .options = builtin_options(44),
               .infer = infer_comparison<false>,
               .prepare = prepare_comparison<std::less<>, false, true>,
               .result_type = DType::kBool,
               .quantize = free_rule({.int8 = 2}),
               .types = kOrdered},
              {.id = op::kGreaterEqual,
               .max_version = 3,
               .options = builtin_options(45),
               .infer = infer_comparison<false>,
               .prepare = prepare_comparison<std::less_equal<>, false, true>,
               .result_type = DType::kBool,
               .quantize = free_rule({.int8 = 2}),
               .types = kOrdered},
          });
}

}  // namespace leadline::ops
