// SPDX-License-Identifier: Apache-2.0
#include "jobs/sample_values.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/cancel.h"
#include "core/error.h"
#include "core/half.h"
#include "core/work.h"

namespace leadline::jobs {
namespace {

constexpr int64_t kPiece = 4096;  // elements converted at a time, on the stack

struct Half {
  uint16_t bits;
  explicit operator double() const { return half_to_float(bits); }
};
struct BFloat16 {
  uint16_t bits;
  explicit operator double() const { return bfloat16_to_float(bits); }
};

/// Calls visit(T{}) with the C++ type of integers of `type`; integers of less than a byte come one to a byte.
template <typename Visit>
bool visit_integer(DType type, const Visit& visit) {
  switch (type) {
    case DType::kInt2:
    case DType::kInt4:
    case DType::kInt8:
      return visit(int8_t{}), true;
    case DType::kUInt4:
    case DType::kUInt8:
      return visit(uint8_t{}), true;
    case DType::kInt16:
      return visit(int16_t{}), true;
    case DType::kUInt16:
      return visit(uint16_t{}), true;
    case DType::kInt32:
      return visit(int32_t{}), true;
    case DType::kUInt32:
      return visit(uint32_t{}), true;
    case DType::kInt64:
      return visit(int64_t{}), true;
    case DType::kUInt64:
      return visit(uint64_t{}), true;
    default:
      return false;
  }
}

template <typename Visit>
bool visit_number(DType type, const Visit& visit) {
  switch (type) {
    case DType::kFloat32:
      return visit(float{}), true;
    case DType::kFloat64:
      return visit(double{}), true;
    case DType::kFloat16:
      return visit(Half{}), true;
    case DType::kBFloat16:
      return visit(BFloat16{}), true;
    default:
      return visit_integer(type, visit);
  }
}

template <typename T>
T load(const SampleTensor& tensor, int64_t index) {
  T value;
  std::memcpy(&value, tensor.data.data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store(std::span<std::byte> out, int64_t index, T value) {
  std::memcpy(out.data() + static_cast<size_t>(index) * sizeof(T), &value, sizeof(T));
}

/// Calls use(first, values) for all values, converted to double, in pieces.
template <typename Use>
void for_reals(const SampleTensor& tensor, const Use& use) {
  const int64_t count = tensor.shape.elements();
  std::array<double, kPiece> values;
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    check_cancelled();
    const auto size = static_cast<size_t>(std::min(kPiece, count - begin));
    visit_number(tensor.dtype, [&]<typename T>(T) {
      for (size_t i = 0; i < size; ++i) {
        values[i] = static_cast<double>(load<T>(tensor, begin + static_cast<int64_t>(i)));
      }
    });
    use(begin, std::span<const double>(values.data(), size));
  }
}

/// The value that a float type keeps of `value`; infinity where that is too large for it.
double kept(double value, DType to) {
  switch (to) {
    case DType::kFloat32:
      return std::abs(value) > 0x1.ffffffp127 ? std::copysign(HUGE_VAL, value) : static_cast<float>(value);
    case DType::kFloat16:
      return half_to_float(float_to_half(static_cast<float>(kept(value, DType::kFloat32))));
    case DType::kBFloat16:
      return bfloat16_to_float(float_to_bfloat16(static_cast<float>(kept(value, DType::kFloat32))));
    default:
      return value;
  }
}

struct IntegerLimits {
  int64_t min = 0;
  uint64_t max = 0;
};

IntegerLimits limits_of(DType type) {
  const int bits = dtype_bits(type);
  const bool is_unsigned = type == DType::kUInt4 || type == DType::kUInt8 || type == DType::kUInt16 ||
                           type == DType::kUInt32 || type == DType::kUInt64;
  if (is_unsigned) return {0, bits == 64 ? UINT64_MAX : (uint64_t{1} << static_cast<unsigned>(bits)) - 1};
  const uint64_t max = (uint64_t{1} << static_cast<unsigned>(bits - 1)) - 1;
  return {-static_cast<int64_t>(max) - 1, max};
}

void pack_bits(std::span<const std::byte> values, int bits, std::span<std::byte> out) {
  std::fill(out.begin(), out.end(), std::byte{0});
  const auto per_byte = static_cast<size_t>(8 / bits);
  const unsigned mask = (1U << static_cast<unsigned>(bits)) - 1U;
  for (size_t i = 0; i < values.size() && i / per_byte < out.size(); ++i) {
    const unsigned shift = static_cast<unsigned>(i % per_byte) * static_cast<unsigned>(bits);
    out[i / per_byte] |= static_cast<std::byte>((std::to_integer<unsigned>(values[i]) & mask) << shift);
  }
}

void store_real(double value, DType to, std::span<std::byte> out, int64_t index) {
  const double rounded = kept(value, to);
  switch (to) {
    case DType::kFloat64:
      return store(out, index, rounded);
    case DType::kFloat16:
      return store(out, index, float_to_half(static_cast<float>(rounded)));
    case DType::kBFloat16:
      return store(out, index, float_to_bfloat16(static_cast<float>(rounded)));
    default:
      return store(out, index, static_cast<float>(rounded));
  }
}

/// Rounds to nearest, ties away from zero, as the op QUANTIZE does.
void quantize(const SampleTensor& tensor, const TensorInfo& to, std::span<std::byte> out) {
  const IntegerLimits limits = limits_of(to.dtype);
  const auto lo = static_cast<float>(limits.min), hi = static_cast<float>(limits.max);
  const float scale = to.scales[0];
  const auto zero_point = static_cast<float>(to.zero_points.empty() ? 0 : to.zero_points[0]);
  for_reals(tensor, [&](int64_t first, std::span<const double> values) {
    for (const double value : values) {
      const float level = std::clamp(std::round(static_cast<float>(value) / scale) + zero_point, lo, hi);
      visit_integer(to.dtype, [&]<typename T>(T) { store(out, first, static_cast<T>(level)); });
      ++first;
    }
  });
}

void convert_integers(const SampleTensor& tensor, DType to, std::span<std::byte> out) {
  const int64_t count = tensor.shape.elements();
  visit_integer(tensor.dtype, [&]<typename From>(From) {
    visit_integer(to, [&]<typename To>(To) {
      PacedCheck check;
      for (int64_t i = 0; i < count; ++i) {
        store(out, i, static_cast<To>(load<From>(tensor, i)));
        check.count(1);
      }
    });
  });
}

}  // namespace

bool is_real(DType type) {
  return type == DType::kFloat32 || type == DType::kFloat16 || type == DType::kBFloat16 || type == DType::kFloat64;
}

bool is_integer(DType type) {
  return visit_integer(type, [](auto) {});
}

Conversion conversion_of(DType from, const TensorInfo& to) {
  const int bits = dtype_bits(to.dtype);
  const bool packed = is_integer(to.dtype) && bits < 8;
  if (from == to.dtype) return packed ? Conversion::kPack : Conversion::kNone;
  if (is_real(to.dtype)) return is_real(from) || is_integer(from) ? Conversion::kReal : Conversion::kRefused;
  if (to.dtype == DType::kFloat8E4M3FN || to.dtype == DType::kFloat8E5M2) {  // their bits, as numpy has no such types
    return from == DType::kInt8 || from == DType::kUInt8 ? Conversion::kNone : Conversion::kRefused;
  }
  if (!is_integer(to.dtype)) return Conversion::kRefused;
  if (packed) return from == DType::kInt8 || from == DType::kUInt8 ? Conversion::kPack : Conversion::kRefused;
  if (is_integer(from)) return Conversion::kInteger;
  const bool quantized = to.scales.size() == 1 && bits <= 16 && to.dtype != DType::kUInt16;
  return is_real(from) && quantized ? Conversion::kQuantize : Conversion::kRefused;
}

ValueSummary summarize(const SampleTensor& tensor, DType to) {
  ValueSummary summary;
  for_reals(tensor, [&](int64_t first, std::span<const double> values) {
    for (const double value : values) {
      const double number = kept(value, to);
      if (!std::isfinite(number)) {
        if (summary.not_finite++ == 0) summary.first_not_finite = first;
      } else {
        summary.min = std::min(summary.min, number);
        summary.max = std::max(summary.max, number);
        summary.whole = summary.whole && number == std::rint(number);
      }
      ++first;
    }
  });
  return summary;
}

bool integers_fit(const SampleTensor& tensor, DType to) {
  const IntegerLimits limits = limits_of(to);
  const int64_t count = tensor.shape.elements();
  bool fit = true;
  visit_integer(tensor.dtype, [&]<typename T>(T) {
    PacedCheck check;
    for (int64_t i = 0; i < count && fit; ++i) {
      const T value = load<T>(tensor, i);
      fit = !std::cmp_less(value, limits.min) && !std::cmp_greater(value, limits.max);
      check.count(1);
    }
  });
  return fit;
}

void convert(const SampleTensor& tensor, const TensorInfo& to, std::span<std::byte> out) {
  switch (conversion_of(tensor.dtype, to)) {
    case Conversion::kNone:
      return copy_bytes(out.data(), tensor.data.data(), static_cast<int64_t>(tensor.data.size()));
    case Conversion::kPack:
      return pack_bits(tensor.data, dtype_bits(to.dtype), out);
    case Conversion::kInteger:
      return convert_integers(tensor, to.dtype, out);
    case Conversion::kQuantize:
      return quantize(tensor, to, out);
    case Conversion::kReal:
      return for_reals(tensor, [&](int64_t first, std::span<const double> values) {
        for (const double value : values) store_real(value, to.dtype, out, first++);
      });
    case Conversion::kRefused:
      break;
  }
  fail(ErrorCode::kInvalidArgument, "input '{}' takes {}, got {}", to.name, dtype_name(to.dtype),
       dtype_name(tensor.dtype));
}

double real_at(const SampleTensor& tensor, int64_t index) {
  double value = 0;
  visit_number(tensor.dtype, [&]<typename T>(T) { value = static_cast<double>(load<T>(tensor, index)); });
  return value;
}

std::optional<int64_t> integer_at(const SampleTensor& tensor, int64_t index) {
  std::optional<int64_t> result;
  visit_integer(tensor.dtype, [&]<typename T>(T) {
    const T value = load<T>(tensor, index);
    if (std::in_range<int64_t>(value)) result = static_cast<int64_t>(value);
  });
  return result;
}

}  // namespace leadline::jobs
