// SPDX-License-Identifier: Apache-2.0
// What the elementwise families share: checks of operands, and kernels that run a function over whole tensors on the
// thread pool. The kernels are right when the output is the memory of an input with as many elements.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/half.h"
#include "kernels/elementwise/lookup8.h"
#include "kernels/elementwise/lut.h"
#include "kernels/elementwise/unary_f32.h"
#include "ops/common.h"
#include "ops/quantization_rules.h"
#include "ops/registry.h"

namespace leadline::ops {

/// What an element costs (core/work.h): in loops over bytes, in those that only move memory, and in those that compute.
inline constexpr double kLookupCost = 0.3;
inline constexpr double kLightCost = 0.6;
inline constexpr double kHeavyCost = 2.5;

/// Adds rows of ops with exactly `inputs` inputs, all required, and one output. `sharing` and `fast` are those of all.
void add_ops(Registry& registry, int inputs, Sharing sharing, std::initializer_list<OpDef> rows,
             std::string_view fast = {});

/// Output 0 has input 0's type and shape; the type is one of `types`.
void infer_unary(InferContext& c, std::initializer_list<DType> types);

/// Inputs 0 and 1 have the same type, one of `types`; output 0 has it too and the shape they broadcast to.
void infer_binary(InferContext& c, std::initializer_list<DType> types);

/// The same for an output of type `result`.
void infer_binary(InferContext& c, std::initializer_list<DType> types, DType result);

/// The same for StableHLO's ops: inputs of any type of numbers, or bool, that have the same shape.
void infer_binary_stablehlo(InferContext& c);

inline bool is_8bit(DType type) { return type == DType::kInt8 || type == DType::kUInt8; }
inline bool is_small_integer(DType type) { return is_8bit(type) || type == DType::kInt16; }

/// Scale and zero point; call after require_quantized.
kernels::Affine affine(const Operand& operand);

/// Throws unless the operand is quantized per tensor with zero point 0.
void require_symmetric(const OpContext& c, const Operand& operand, const char* what);

/// Small integers are quantized, input and output; int16 with zero point 0 if `symmetric_int16`.
void require_quantized_pair(const OpContext& c, bool symmetric_int16 = true);

/// Calls body with a value of the storage type of a floating type: float, double, Half or BFloat16.
template <typename Body>
auto visit_floating(const OpContext& c, DType type, Body&& body) {
  switch (type) {
    case DType::kFloat32:
      return body(float{});
    case DType::kFloat64:
      return body(double{});
    case DType::kFloat16:
      return body(kernels::Half{});
    case DType::kBFloat16:
      return body(kernels::BFloat16{});
    default:
      c.fail(ErrorCode::kUnsupported, "type {} is not supported", dtype_name(type));
  }
}

inline bool is_floating(DType type) {
  return type == DType::kFloat32 || type == DType::kFloat64 || type == DType::kFloat16 || type == DType::kBFloat16;
}

/// The type to compute in: float for float16 and bfloat16, else T itself.
template <typename T>
using Compute = std::conditional_t<std::is_same_v<T, kernels::Half> || std::is_same_v<T, kernels::BFloat16>, float, T>;

/// A function of the elements of input 0. One function is compiled per kind of kernel, and as little of it as can be:
/// there are hundreds of kinds.
class UnaryKernel final : public Kernel {
 public:
  /// Computes `count` elements.
  using Piece = StoredFunction<const std::byte*, std::byte*, int64_t>;
  UnaryKernel(int64_t in_bytes, int64_t out_bytes, Piece piece, double cost)
      : piece_(std::move(piece)), in_bytes_(in_bytes), out_bytes_(out_bytes), cost_(cost) {}
  void run(RunContext& c) override;

 private:
  Piece piece_;
  int64_t in_bytes_, out_bytes_;  // of an element
  double cost_;
};

/// out[i] = f(in[i]) over the whole tensor; f takes and returns Compute<T>.
template <typename T, typename F>
std::unique_ptr<Kernel> unary_kernel(F f, double cost = kLightCost) {
  auto piece = [function = std::move(f)](const std::byte* from, std::byte* to, int64_t count) {
    const T* in = reinterpret_cast<const T*>(from);
    T* out = reinterpret_cast<T*>(to);
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(function(static_cast<Compute<T>>(in[i])));
  };
  return std::make_unique<UnaryKernel>(sizeof(T), sizeof(T), std::move(piece), cost);
}

/// A vectorised function of float32, float16 or bfloat16 tensors.
std::unique_ptr<Kernel> unary_float_kernel(const OpContext& c, kernels::UnaryF32 op, float p0 = 0.0F, float p1 = 0.0F,
                                           double cost = kLightCost);

/// Output 0 is input 0 through a table.
template <typename T>
std::unique_ptr<Kernel> lut8_kernel(const kernels::Lut8<T>& lut) {
  return make_kernel([lut, row = kernels::lookup8_row()](RunContext& c) {
    const auto* table = reinterpret_cast<const uint8_t*>(lut.data());
    const auto* in = c.input(0).as<uint8_t>();
    auto* out = c.output(0).mutable_as<uint8_t>();
    c.pool().for_pieces(c.output(0).elements(), kLookupCost,
                        [&](int64_t begin, int64_t end) { row(table, in + begin, out + begin, end - begin); });
  });
}

/// A real function f(float) -> float of an int8, uint8 or int16 tensor by TFLite's tables.
template <typename F>
std::unique_ptr<Kernel> real_lut_kernel(const OpContext& c, const F& f) {
  const kernels::Affine in = affine(c.input(0));
  const kernels::Affine out = affine(c.output(0));
  switch (c.input(0).dtype()) {
    case DType::kInt8:
      return lut8_kernel(kernels::make_real_lut8<int8_t>(in, out, f));
    case DType::kUInt8:
      return lut8_kernel(kernels::make_real_lut8<uint8_t>(in, out, f));
    default:
      break;
  }
  const auto lut = kernels::make_lut16<float>(in.scale, in.zero_point, out.scale, out.zero_point, f);
  return unary_kernel<int16_t>([lut](int16_t v) { return kernels::lookup16(v, lut); });
}

/// How a BinaryKernel finds its operands.
struct BinaryLayout {
  int64_t a_bytes = 0, b_bytes = 0, out_bytes = 0;  // of an element
  double cost = kLightCost;
  bool swapped = false;  // a is input 1
};

/// A function of the elements of inputs 0 and 1, with broadcasting.
class BinaryKernel final : public Kernel {
 public:
  /// Computes `count` elements from a and b, each of which goes on by its step: 0 or 1.
  using Row = StoredFunction<const std::byte*, int64_t, const std::byte*, int64_t, std::byte*, int64_t>;
  BinaryKernel(const OpContext& c, const BinaryLayout& layout, Row row);
  void run(RunContext& c) override;

 private:
  kernels::BroadcastPlan<2> plan_;
  BinaryLayout layout_;
  Row row_;
};

/// out = f(a, b) with broadcasting over inputs 0 and 1; f takes Compute<A> and Compute<B> and returns what casts to R.
template <typename A, typename B, typename R, typename F>
std::unique_ptr<Kernel> mixed_kernel(const OpContext& c, F f, double cost = kLightCost, bool swapped = false) {
  auto row = [function = std::move(f)](const std::byte* a, int64_t a_step, const std::byte* b, int64_t b_step,
                                       std::byte* out, int64_t count) {
    kernels::binary_row(reinterpret_cast<const A*>(a), a_step, reinterpret_cast<const B*>(b), b_step,
                        reinterpret_cast<R*>(out), count, [&function](A x, B y) {
                          return static_cast<R>(function(static_cast<Compute<A>>(x), static_cast<Compute<B>>(y)));
                        });
  };
  return std::make_unique<BinaryKernel>(c, BinaryLayout{sizeof(A), sizeof(B), sizeof(R), cost, swapped},
                                        std::move(row));
}

/// The same for operands of one type.
template <typename T, typename R, typename F>
std::unique_ptr<Kernel> binary_kernel(const OpContext& c, F f, double cost = kLightCost, bool swapped = false) {
  return mixed_kernel<T, T, R>(c, std::move(f), cost, swapped);
}

/// out = f(a, b) by a row function row(a, a_step, b, b_step, out, count). Rows too short for one call each are first
/// laid out one after the other, a block at a time.
template <typename T, typename Row>
std::unique_ptr<Kernel> binary_row_kernel(const OpContext& c, Row row, double cost = kLightCost) {
  constexpr int64_t kShortRow = 32;
  constexpr int64_t kBlock = 1024;
  const auto plan = kernels::plan_broadcast<2>(c.output(0).shape, {c.input(0).shape, c.input(1).shape});
  const bool blocks = plan.rank > 1 && plan.row() < kShortRow;
  const bool dense_a = c.input(0).shape.elements() == plan.elements;
  const bool dense_b = c.input(1).shape.elements() == plan.elements;
  return make_kernel([=](RunContext& run) {
    const T* a = run.input(0).as<T>();
    const T* b = run.input(1).as<T>();
    T* out = run.output(0).mutable_as<T>();
    run.pool().for_pieces(plan.elements, blocks ? kHeavyCost : cost, [&](int64_t begin, int64_t end) {
      if (!blocks) {
        kernels::for_each_row(plan, begin, end, [&](int64_t at, const std::array<int64_t, 2>& from, int64_t count) {
          row(a + from[0], plan.step(0), b + from[1], plan.step(1), out + at, count);
        });
        return;
      }
      std::array<T, kBlock> block_a;
      std::array<T, kBlock> block_b;
      for (int64_t at = begin; at < end; at += kBlock) {
        const int64_t count = std::min(kBlock, end - at);
        if (!dense_a) kernels::expand(plan, 0, a, at, at + count, block_a.data());
        if (!dense_b) kernels::expand(plan, 1, b, at, at + count, block_b.data());
        row(dense_a ? a + at : block_a.data(), 1, dense_b ? b + at : block_b.data(), 1, out + at, count);
      }
    });
  });
}

/// Sum, difference and product that wrap around for integers.
template <typename T>
T wrapping_add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}
template <typename T>
T wrapping_sub(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  } else {
    return a - b;
  }
}
template <typename T>
T wrapping_mul(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

}  // namespace leadline::ops
