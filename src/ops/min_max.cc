// SPDX-License-Identifier: Apache-2.0
// MAXIMUM, MINIMUM and their StableHLO twins. Quantized operands are compared as they are: the format requires all
// three tensors the same scale.
#include "kernels/elementwise/binary_f32.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace leadline::ops {
namespace {

void infer_min_max(InferContext& c) {
  infer_binary(c, {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64, DType::kInt8, DType::kUInt8,
                   DType::kInt16, DType::kUInt16, DType::kInt32, DType::kUInt32, DType::kInt64, DType::kUInt64});
}

template <bool kMaximum>
struct Choose {
  template <typename T>
  T operator()(T a, T b) const {
    return (kMaximum ? a > b : a < b) ? a : b;
  }
};

template <bool kMaximum>
std::unique_ptr<Kernel> prepare_min_max(PrepareContext& c) {
  const DType type = c.input(0).dtype();
  const auto plain = [&](auto zero) {
    using T = decltype(zero);
    return binary_kernel<T, T>(c, Choose<kMaximum>{});
  };
  if (type == DType::kFloat32) {
    const auto row = kernels::binary_row_f32(kMaximum ? kernels::BinaryF32::kMaximum : kernels::BinaryF32::kMinimum);
    return binary_row_kernel<float>(c, [row](const float* a, int64_t a_step, const float* b, int64_t b_step, float* out,
                                             int64_t count) { row(a, a_step, b, b_step, out, count, 0.0F, 0.0F); });
  }
  if (type == DType::kBool) {
    // Any byte but 0 is true, also one that is not a valid bool.
    return binary_kernel<uint8_t, uint8_t>(
        c, [](uint8_t a, uint8_t b) { return Choose<kMaximum>{}(uint8_t{a != 0}, uint8_t{b != 0}); });
  }
  return is_floating(type) ? visit_floating(c, type, plain) : visit_numeric(c, type, plain);
}

}  // namespace

void register_min_max(Registry& registry) {
  constexpr std::string_view kTypes = "f32 f16 bf16 f64 i8 u8 i16 u16 i32 u32 i64 u64";
  constexpr std::string_view kStableHloTypes = "f32 f16 bf16 f64 i8 u8 i16 u16 i32 u32 i64 u64 bool";
  add_ops(registry, 2, Sharing::kInPlace,
          {
              {.id = op::kMaximum,
               .max_version = 4,
               .options = builtin_options(39),
               .infer = infer_min_max,
               .prepare = prepare_min_max<true>,
               .elementwise = true,
               .quantize = same_scale_rule({.int8 = 2, .int16 = 4}),
               .types = kTypes},
              {.id = op::kMinimum,
               .max_version = 4,
               .options = builtin_options(39),
               .infer = infer_min_max,
               .prepare = prepare_min_max<false>,
               .elementwise = true,
               .quantize = same_scale_rule({.int8 = 2, .int16 = 4}),
               .types = kTypes},
              {.id = op::kStablehloMaximum,
               .infer = infer_binary_stablehlo,
               .prepare = prepare_min_max<true>,
               .types = kStableHloTypes},
              {.id = op::kStablehloMinimum,
               .infer = infer_binary_stablehlo,
               .prepare = prepare_min_max<false>,
               .types = kStableHloTypes},
          },
          "f32");
}

}  // namespace leadline::ops
