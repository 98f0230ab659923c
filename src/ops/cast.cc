// SPDX-License-Identifier: Apache-2.0
// CAST: element by element to another type. Floating point to integer truncates and saturates; integers wrap.
#include "ops/cast.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/half.h"
#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace {

struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};
struct Complex64 {
  float real;
  float imaginary;
};
struct Bool {
  uint8_t byte;  // users may set bytes other than 0 and 1
};

/// The number an element stands for, as a C++ arithmetic type.
template <typename T>
auto number(T value) {
  if constexpr (std::is_same_v<T, Half>) {
    return half_to_float(value.bits);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return bfloat16_to_float(value.bits);
  } else if constexpr (std::is_same_v<T, Complex64>) {
    return value.real;
  } else if constexpr (std::is_same_v<T, Bool>) {
    return static_cast<uint8_t>(value.byte != 0 ? 1 : 0);
  } else {
    return value;
  }
}

/// Truncates; values outside the range become its ends. NaN becomes the largest value, as in TFLite.
template <typename To, typename From>
To saturate(From value) {
  constexpr auto kLowest = static_cast<From>(std::numeric_limits<To>::min());
  // 2^n, exact, where max() itself may not be.
  constexpr From kPastEnd = static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * From{2};
  if (value < kLowest) return std::numeric_limits<To>::min();
  if (!(value < kPastEnd)) return std::numeric_limits<To>::max();
  return static_cast<To>(value);
}

template <typename To, typename From>
To convert(From element) {
  if constexpr (std::is_same_v<To, From>) {
    return element;
  } else {
    const auto value = number(element);
    using Number = std::remove_const_t<decltype(value)>;
    if constexpr (std::is_same_v<To, Half>) {
      return {float_to_half(static_cast<float>(value))};
    } else if constexpr (std::is_same_v<To, BFloat16>) {
      return {float_to_bfloat16(static_cast<float>(value))};
    } else if constexpr (std::is_same_v<To, Complex64>) {
      return {static_cast<float>(value), 0.0F};
    } else if constexpr (std::is_same_v<To, Bool>) {
      return {static_cast<uint8_t>(value != Number{0} ? 1 : 0)};
    } else if constexpr (std::is_floating_point_v<Number> && std::is_integral_v<To>) {
      return saturate<To>(value);
    } else {
      return static_cast<To>(value);
    }
  }
}

/// Calls body with an element of the type, or returns a null result for types that are not whole bytes.
template <typename Body>
std::unique_ptr<Kernel> visit_element(DType type, const Body& body) {
  switch (type) {
    case DType::kFloat32:
      return body(float{});
    case DType::kFloat64:
      return body(double{});
    case DType::kFloat16:
      return body(Half{});
    case DType::kBFloat16:
      return body(BFloat16{});
    case DType::kInt8:
      return body(int8_t{});
    case DType::kUInt8:
      return body(uint8_t{});
    case DType::kInt16:
      return body(int16_t{});
    case DType::kUInt16:
      return body(uint16_t{});
    case DType::kInt32:
      return body(int32_t{});
    case DType::kUInt32:
      return body(uint32_t{});
    case DType::kInt64:
      return body(int64_t{});
    case DType::kUInt64:
      return body(uint64_t{});
    case DType::kBool:
      return body(Bool{});
    case DType::kComplex64:
      return body(Complex64{});
    default:
      return nullptr;
  }
}

template <typename From, typename To>
void cast_all(RunContext& c) {
  const From* from = c.input(0).as<From>();
  To* to = c.output(0).mutable_as<To>();
  c.pool().for_pieces(c.output(0).elements(), 0.5, [from, to](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = convert<To>(from[i]);
  });
}

bool packed(DType type) { return type == DType::kInt4 || type == DType::kUInt4 || type == DType::kInt2; }

struct PackedRange {
  int bits = 4;
  int lowest = 0;
  int largest = 0;
};

PackedRange packed_range(DType type) {
  if (type == DType::kInt4) return {4, -8, 7};
  if (type == DType::kInt2) return {2, -2, 1};
  return {4, 0, 15};
}

template <typename To>
void cast_from_packed(RunContext& c, PackedRange range) {
  const std::byte* from = c.input(0).data;
  To* to = c.output(0).mutable_as<To>();
  const int64_t count = c.output(0).elements();
  for (int64_t i = 0; i < count; ++i) {
    auto value = static_cast<int>(get_packed(from, i, range.bits));
    if (value > range.largest) value -= 1 << range.bits;
    to[i] = convert<To>(static_cast<int8_t>(value));
  }
}

void cast_float_to_packed(RunContext& c, PackedRange range) {
  const float* from = c.input(0).as<float>();
  const TensorView& out = c.output(0);
  if (out.bytes > 0) out.data[out.bytes - 1] = std::byte{0};
  const int64_t count = out.elements();
  const auto lowest = static_cast<float>(range.lowest);
  const auto largest = static_cast<float>(range.largest);
  for (int64_t i = 0; i < count; ++i) {
    const float value = from[i] < largest ? std::max(from[i], lowest) : largest;  // NaN: the largest
    put_packed(out.data, i, range.bits, static_cast<unsigned>(static_cast<int>(value)));
  }
}

/// Null when there is no such cast.
std::unique_ptr<Kernel> cast_kernel(DType from, DType to) {
  if (packed(from)) {
    return visit_element(to, [from](auto target) -> std::unique_ptr<Kernel> {
      return make_kernel([range = packed_range(from)](RunContext& c) { cast_from_packed<decltype(target)>(c, range); });
    });
  }
  if (packed(to)) {
    if (from != DType::kFloat32) return nullptr;
    return make_kernel([range = packed_range(to)](RunContext& c) { cast_float_to_packed(c, range); });
  }
  return visit_element(from, [to](auto source) {
    return visit_element(to, [](auto target) -> std::unique_ptr<Kernel> {
      return make_kernel(cast_all<decltype(source), decltype(target)>);
    });
  });
}

void infer_cast(InferContext& c) {
  const DType from = c.input(0).dtype();
  const DType to = c.output(0).dtype();
  if (cast_kernel(from, to) == nullptr) {
    c.fail(ErrorCode::kUnsupported, "no cast from {} to {}", dtype_name(from), dtype_name(to));
  }
  c.set_output_shape(0, c.input(0).shape);
}

std::unique_ptr<Kernel> prepare_cast(PrepareContext& c) { return cast_kernel(c.input(0).dtype(), c.output(0).dtype()); }

}  // namespace

void register_cast(Registry& registry) {
  registry.add({.id = op::kCast,
                .max_version = 9,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(37),
                .make_attributes = make_attributes<CastAttributes>,
                .infer = infer_cast,
                .prepare = prepare_cast,
                .types = "all numbers; f32 -> i4 u4 i2; i4 u4 i2 -> all"});
}

}  // namespace leadline::ops
