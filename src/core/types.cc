// SPDX-License-Identifier: Apache-2.0
// Element types and shapes.
#include "leadline/types.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace leadline {
namespace {

struct DTypeInfo {
  const char* name;
  int bits;
};

// Indexed by the value of DType. Names are those of numpy and ml_dtypes.
constexpr std::array<DTypeInfo, kDTypeCount> kDTypes = {{
    {"float32", 32}, {"float16", 16},      {"int32", 32},      {"uint8", 8},      {"int64", 64},
    {"string", 0},   {"bool", 8},          {"int16", 16},      {"complex64", 64}, {"int8", 8},
    {"float64", 64}, {"complex128", 128},  {"uint64", 64},     {"resource", 32},  {"variant", 0},
    {"uint32", 32},  {"uint16", 16},       {"int4", 4},        {"bfloat16", 16},  {"int2", 2},
    {"uint4", 4},    {"float8_e4m3fn", 8}, {"float8_e5m2", 8},
}};

const DTypeInfo* find_info(DType type) noexcept {
  const int index = static_cast<int>(type);
  return index >= 0 && index < kDTypeCount ? &kDTypes[static_cast<size_t>(index)] : nullptr;
}

template <typename T>
std::string format_dims(std::span<const T> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i)
    fmt::format_to(std::back_inserter(text), "{}{}", i == 0 ? "" : ", ", dims[i]);
  return text + "]";
}

template <typename T>
int check_dims(std::span<const T> dims) {
  require(dims.size() <= static_cast<size_t>(kMaxRank), ErrorCode::kInvalidArgument,
          "a shape has at most {} dimensions, got {}", kMaxRank, dims.size());
  require(std::all_of(dims.begin(), dims.end(), [](T size) { return size >= 0; }), ErrorCode::kInvalidArgument,
          "the dimensions of a shape cannot be negative, got {}", format_dims(dims));
  return static_cast<int>(dims.size());
}

}  // namespace

const char* dtype_name(DType type) noexcept {
  const DTypeInfo* info = find_info(type);
  return info != nullptr ? info->name : "unknown";
}

int dtype_bits(DType type) noexcept {
  const DTypeInfo* info = find_info(type);
  return info != nullptr ? info->bits : 0;
}

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (name == kDTypes[static_cast<size_t>(i)].name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

Shape::Shape(std::span<const int64_t> dims) : rank_(check_dims(dims)) {
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

Shape::Shape(std::span<const int32_t> dims) : rank_(check_dims(dims)) {
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

void Shape::push_back(int64_t size) {
  require(rank_ < kMaxRank, ErrorCode::kInvalidArgument,
          "a shape has at most {} dimensions, {} has no room for one more", kMaxRank, to_string());
  require(size >= 0, ErrorCode::kInvalidArgument, "the dimensions of a shape cannot be negative, got {}", size);
  dims_[static_cast<size_t>(rank_++)] = size;
}

std::optional<int64_t> Shape::checked_elements() const noexcept {
  // A zero anywhere makes the product zero, even where the other dimensions alone would overflow.
  int64_t product = 1;
  bool overflow = false;
  for (const int64_t size : dims()) {
    if (size == 0) return 0;
    overflow |= __builtin_mul_overflow(product, size, &product);
  }
  if (overflow) return std::nullopt;
  return product;
}

int64_t Shape::elements() const noexcept { return checked_elements().value_or(std::numeric_limits<int64_t>::max()); }

std::string Shape::to_string() const { return format_dims(dims()); }

bool operator==(const Shape& a, const Shape& b) noexcept { return std::ranges::equal(a.dims(), b.dims()); }

std::optional<int64_t> storage_bytes(DType type, const Shape& shape) noexcept {
  const int bits = dtype_bits(type);
  if (bits == 0) return 0;
  const std::optional<int64_t> elements = shape.checked_elements();
  if (!elements) return std::nullopt;
  if (bits < 8) {
    const int per_byte = 8 / bits;
    return *elements / per_byte + (*elements % per_byte != 0 ? 1 : 0);
  }
  int64_t bytes = 0;
  if (__builtin_mul_overflow(*elements, static_cast<int64_t>(bits / 8), &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace leadline
