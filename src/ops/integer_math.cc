// SPDX-License-Identifier: Apache-2.0
// POW, FLOOR_DIV, FLOOR_MOD, RIGHT_SHIFT, BITWISE_XOR, ATAN2 and StableHLO's AND and SHIFT_LEFT.
// Integers wrap around (int32 powers mostly excepted); divisors and exponents are checked before the loop.
#include <cmath>
#include <limits>

#include "ops/elementwise.h"
#include "ops/families.h"

namespace leadline::ops {
namespace {

/// Throws unless good(value) for every value of input 1.
template <typename T, typename Good>
void check_values(const RunContext& c, const Good& good, const char* what) {
  const T* values = c.input(1).as<T>();
  const int64_t count = c.input(1).elements();
  for (int64_t i = 0; i < count; ++i) {
    if (!good(values[i])) [[unlikely]] {
      c.require(false, "input 1 has {} at position {}: {}", static_cast<double>(values[i]), i, what);
    }
  }
}

/// `kernel`, after a check of input 1.
template <typename T, typename Good>
std::unique_ptr<Kernel> checked(std::unique_ptr<Kernel> kernel, Good good, const char* what) {
  return make_kernel([kernel = std::move(kernel), good, what](RunContext& c) {
    check_values<T>(c, good, what);
    kernel->run(c);
  });
}

// POW.

void infer_pow(InferContext& c) { infer_binary(c, {DType::kFloat32, DType::kInt32, DType::kInt64}); }

/// Powers that do not fit are the smallest number: what TFLite's conversion from double returns on x86.
int32_t rounded_pow(int32_t base, int32_t exponent) {
  const double power = std::pow(static_cast<double>(base), static_cast<double>(exponent));
  return std::abs(power) < 0x1.0p31 ? static_cast<int32_t>(power) : std::numeric_limits<int32_t>::min();
}

/// base^exponent modulo 2^bits, exponent >= 0.
template <typename T>
T wrapping_pow(T base, T exponent) {
  uint64_t result = 1;
  auto square = static_cast<uint64_t>(base);
  for (auto left = static_cast<uint64_t>(exponent); left != 0; left >>= 1) {
    if ((left & 1U) != 0) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

template <typename T>
std::unique_ptr<Kernel> prepare_integer_pow(const OpContext& c, T (*power)(T, T)) {
  return checked<T>(
      binary_kernel<T, T>(c, power, kHeavyCost), [](T v) { return v >= 0; }, "integers have no negative powers");
}

std::unique_ptr<Kernel> prepare_pow(PrepareContext& c) {
  switch (c.input(0).dtype()) {
    case DType::kInt32: {
      // TFLite multiplies, and wraps around, when one exponent is broadcast.
      const bool one_exponent = c.input(1).shape.elements() == 1 && c.input(0).shape != c.input(1).shape;
      return prepare_integer_pow<int32_t>(c, one_exponent ? wrapping_pow<int32_t> : rounded_pow);
    }
    case DType::kInt64:
      return prepare_integer_pow<int64_t>(c, wrapping_pow<int64_t>);
    default:
      return binary_kernel<float, float>(c, [](float a, float b) { return std::pow(a, b); }, kHeavyCost);
  }
}

// FLOOR_DIV, FLOOR_MOD.

void infer_floor(InferContext& c) {
  infer_binary(c, {DType::kFloat32, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64});
}

template <typename T>
T floor_div(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::floor(a / b);
  } else {
    if (b == -1) return wrapping_sub(T{0}, a);
    const T quotient = static_cast<T>(a / b);
    return static_cast<T>(quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0));
  }
}

template <typename T>
T floor_mod(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const T remainder = std::fmod(a, b);
    return remainder != 0 && (b < 0) != (remainder < 0) ? remainder + b : remainder;
  } else {
    if (b == -1) return 0;
    const T remainder = static_cast<T>(a % b);
    return static_cast<T>(remainder != 0 && (b < 0) != (remainder < 0) ? remainder + b : remainder);
  }
}

template <bool kMod>
std::unique_ptr<Kernel> prepare_floor(PrepareContext& c) {
  const auto of_type = [&](auto zero) -> std::unique_ptr<Kernel> {
    using T = decltype(zero);
    auto kernel = binary_kernel<T, T>(c, kMod ? floor_mod<T> : floor_div<T>, kHeavyCost);
    // Like TFLite: a float remainder may be NaN, a float quotient may not be infinite.
    if (kMod && std::is_floating_point_v<T>) return kernel;
    return checked<T>(std::move(kernel), [](T v) { return v != T{0}; }, "division by zero");
  };
  switch (c.input(0).dtype()) {
    case DType::kInt8:
      return of_type(int8_t{});
    case DType::kInt16:
      return of_type(int16_t{});
    case DType::kInt32:
      return of_type(int32_t{});
    case DType::kInt64:
      return of_type(int64_t{});
    default:
      return of_type(float{});
  }
}

// Shifts and bits.

void infer_bitwise(InferContext& c) {
  infer_binary(c, {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16, DType::kInt32, DType::kUInt32,
                   DType::kInt64, DType::kUInt64});
}

void infer_stablehlo_shift(InferContext& c) {
  infer_bitwise(c);
  c.require(c.input(0).shape == c.input(1).shape, "shapes {} and {} differ", c.input(0).shape.to_string(),
            c.input(1).shape.to_string());
}

void infer_stablehlo_and(InferContext& c) {
  infer_binary(c, {DType::kBool, DType::kInt8, DType::kUInt8, DType::kInt16, DType::kUInt16, DType::kInt32,
                   DType::kUInt32, DType::kInt64, DType::kUInt64});
  c.require(c.input(0).shape == c.input(1).shape, "shapes {} and {} differ", c.input(0).shape.to_string(),
            c.input(1).shape.to_string());
}

/// Distances outside the type's width are the nearest one inside, as in TFLite.
struct RightShift {
  template <typename T>
  T operator()(T value, T distance) const {
    constexpr auto kMost = static_cast<T>(std::numeric_limits<T>::digits + (std::is_signed_v<T> ? 0 : -1));
    const T clamped = std::clamp<T>(distance, 0, kMost);
    return static_cast<T>(value >> clamped);
  }
};

/// Bits that leave the type are lost; distances outside its width leave nothing.
struct LeftShift {
  template <typename T>
  T operator()(T value, T distance) const {
    constexpr int kBits = static_cast<int>(sizeof(T)) * 8;
    const bool inside = distance >= T{0} && static_cast<uint64_t>(distance) < static_cast<uint64_t>(kBits);
    return inside ? static_cast<T>(static_cast<uint64_t>(value) << static_cast<unsigned>(distance)) : T{0};
  }
};

struct Xor {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

struct And {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};

template <typename F>
std::unique_ptr<Kernel> prepare_bitwise(PrepareContext& c) {
  if (c.input(0).dtype() == DType::kBool) {
    // Any byte but 0 is true, also one that is not a valid bool.
    return binary_kernel<uint8_t, uint8_t>(c,
                                           [](uint8_t a, uint8_t b) { return F{}(uint8_t{a != 0}, uint8_t{b != 0}); });
  }
  return visit_numeric(c, c.input(0).dtype(), [&](auto zero) -> std::unique_ptr<Kernel> {
    using T = decltype(zero);
    if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, bool>) {
      c.fail(ErrorCode::kUnsupported, "type {} is not supported", dtype_name(c.input(0).dtype()));
    } else {
      return binary_kernel<T, T>(c, F{});
    }
  });
}

// ATAN2.

/// Like LiteRT: pairs elements in order, whatever the shapes, as long as the ranks agree, and the result has the shape
/// of y. It does not broadcast: of a larger x the rest is left over, and beyond a smaller one LiteRT reads other
/// memory.
void infer_atan2(InferContext& c) {
  c.require_input_type(0, {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16});
  c.require_input_type(1, {c.input(0).dtype()});
  c.require_output_type(0, {c.input(0).dtype()});
  const Shape& y = c.input(0).shape;
  const Shape& x = c.input(1).shape;
  c.require(y.rank() == x.rank() && y.elements() <= x.elements(),
            "y has shape {} and x has {}: expected the same rank, and no fewer elements in x (nothing is broadcast)",
            y.to_string(), x.to_string());
  c.set_output_shape(0, y);
}

std::unique_ptr<Kernel> prepare_atan2(PrepareContext& c) {
  return visit_floating(c, c.input(0).dtype(), [](auto zero) {
    using T = decltype(zero);
    return make_kernel([](RunContext& run) {
      const T* y = run.input(0).as<T>();
      const T* x = run.input(1).as<T>();
      T* out = run.output(0).mutable_as<T>();
      run.pool().for_pieces(run.output(0).elements(), kHeavyCost, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          out[i] = static_cast<T>(std::atan2(static_cast<Compute<T>>(y[i]), static_cast<Compute<T>>(x[i])));
        }
      });
    });
  });
}

}  // namespace

void register_integer_math(Registry& registry) {
  constexpr std::string_view kIntegers = "i8 u8 i16 u16 i32 u32 i64 u64";
  constexpr std::string_view kDivisible = "f32 i8 i16 i32 i64";
  add_ops(registry, 2, Sharing::kInPlace,
          {
              {.id = op::kPow,
               .options = builtin_options(56),
               .infer = infer_pow,
               .prepare = prepare_pow,
               .elementwise = true,
               .types = "f32 i32 i64"},
              {.id = op::kFloorDiv,
               .max_version = 3,
               .options = builtin_options(65),
               .infer = infer_floor,
               .prepare = prepare_floor<false>,
               .types = kDivisible},
              {.id = op::kFloorMod,
               .max_version = 2,
               .options = builtin_options(72),
               .infer = infer_floor,
               .prepare = prepare_floor<true>,
               .types = kDivisible},
              {.id = op::kBitwiseXor,
               .options = builtin_options(125),
               .infer = infer_bitwise,
               .prepare = prepare_bitwise<Xor>,
               .types = kIntegers},
              {.id = op::kRightShift,
               .options = builtin_options(126),
               .infer = infer_bitwise,
               .prepare = prepare_bitwise<RightShift>,
               .types = kIntegers},
              {.id = op::kStablehloAnd,
               .infer = infer_stablehlo_and,
               .prepare = prepare_bitwise<And>,
               .types = "bool i8 u8 i16 u16 i32 u32 i64 u64"},
              {.id = op::kStablehloShiftLeft,
               .options = builtin_options_2(22),
               .infer = infer_stablehlo_shift,
               .prepare = prepare_bitwise<LeftShift>,
               .types = kIntegers},
              {.id = op::kAtan2, .infer = infer_atan2, .prepare = prepare_atan2, .types = "f32 f64 f16 bf16"},
          });
}

}  // namespace leadline::ops
