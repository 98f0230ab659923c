// SPDX-License-Identifier: Apache-2.0
// Constants whose elements are read in one type and wanted in another.
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/cancel.h"
#include "core/error.h"
#include "core/half.h"
#include "ir/sources.h"

namespace leadline::ir {
namespace {

struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};
struct Bool {
  uint8_t byte;
};

/// Calls body with an object of the element's type; false when the type has none.
template <typename Body>
bool visit(DType type, Body&& body) {
  switch (type) {
    case DType::kFloat16:
      body(Half{});
      return true;
    case DType::kBFloat16:
      body(BFloat16{});
      return true;
    case DType::kFloat32:
      body(float{});
      return true;
    case DType::kFloat64:
      body(double{});
      return true;
    case DType::kBool:
      body(Bool{});
      return true;
    case DType::kInt8:
      body(int8_t{});
      return true;
    case DType::kUInt8:
      body(uint8_t{});
      return true;
    case DType::kInt16:
      body(int16_t{});
      return true;
    case DType::kUInt16:
      body(uint16_t{});
      return true;
    case DType::kInt32:
      body(int32_t{});
      return true;
    case DType::kUInt32:
      body(uint32_t{});
      return true;
    case DType::kInt64:
      body(int64_t{});
      return true;
    case DType::kUInt64:
      body(uint64_t{});
      return true;
    default:
      return false;
  }
}

/// The number an element stands for, in a type that arithmetic knows.
template <typename T>
auto number(T value) {
  if constexpr (std::is_same_v<T, Half>) {
    return half_to_float(value.bits);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return bfloat16_to_float(value.bits);
  } else if constexpr (std::is_same_v<T, Bool>) {
    return static_cast<uint8_t>(value.byte != 0 ? 1 : 0);
  } else {
    return value;
  }
}

template <typename To, typename N>
To element(N value) {
  if constexpr (std::is_same_v<To, Half>) {
    return {float_to_half(static_cast<float>(value))};
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return {float_to_bfloat16(static_cast<float>(value))};
  } else if constexpr (std::is_same_v<To, Bool>) {
    return {static_cast<uint8_t>(value != N{} ? 1 : 0)};
  } else if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_floating_point_v<N>) {
    if (std::isnan(value)) return 0;
    // The largest 64-bit integers are not floats: compare with the power of two above them.
    const N end = std::ldexp(N{1}, std::numeric_limits<To>::digits);
    if (value >= end) return std::numeric_limits<To>::max();
    if (value <= static_cast<N>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    return static_cast<To>(value);
  } else {
    if (std::cmp_less(value, std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    if (std::cmp_greater(value, std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  }
}

/// `from` may be the tail of `to`: element i is read before it can be overwritten as long as elements do not shrink.
template <typename From, typename To>
void convert(const std::byte* from, std::byte* to, int64_t count) {
  PacedCheck check;
  for (int64_t i = 0; i < count; ++i) {
    check.count(4);
    From in;
    std::memcpy(&in, from + i * static_cast<int64_t>(sizeof(From)), sizeof(From));
    const To out = element<To>(number(in));
    std::memcpy(to + i * static_cast<int64_t>(sizeof(To)), &out, sizeof(To));
  }
}

class Converted final : public PlannedSource {
 public:
  Converted(Source source, DType from, DType to) : source_(std::move(source)), from_(from), to_(to) {
    count_ = source_->bytes() / (dtype_bits(from) / 8);
  }
  int64_t bytes() const override { return count_ * (dtype_bits(to_) / 8); }
  int64_t extra_bytes() const override {
    return (source_->bytes() <= bytes() ? 0 : source_->bytes()) + ir::extra_bytes(*source_);
  }
  void read(std::span<std::byte> out) const override {
    if (count_ == 0) return;
    const auto narrow = static_cast<size_t>(source_->bytes());
    if (narrow <= out.size()) {
      const std::span<std::byte> tail = out.subspan(out.size() - narrow);
      source_->read(tail);
      run(tail.data(), out.data());
      return;
    }
    const auto wide = std::make_unique_for_overwrite<std::byte[]>(narrow);
    source_->read({wide.get(), narrow});
    run(wide.get(), out.data());
  }

 private:
  void run(const std::byte* from, std::byte* to) const {
    visit(from_,
          [&](auto in) { visit(to_, [&](auto out) { convert<decltype(in), decltype(out)>(from, to, count_); }); });
  }

  Source source_;
  DType from_;
  DType to_;
  int64_t count_ = 0;
};

}  // namespace

bool convertible(DType from, DType to) {
  return visit(from, [](auto) {}) && visit(to, [](auto) {});
}

Source converted_source(Source source, DType from, DType to) {
  require(convertible(from, to), ErrorCode::kUnsupported, "constants of type {} cannot be converted to {}",
          dtype_name(from), dtype_name(to));
  if (from == to) return source;
  const int64_t size = dtype_bits(from) / 8;
  require(source != nullptr && source->bytes() % size == 0 && source->bytes() / size <= INT64_MAX / 16,
          ErrorCode::kInvalidArgument, "{} bytes are not a constant of type {}",
          source == nullptr ? 0 : source->bytes(), dtype_name(from));
  return std::make_shared<Converted>(std::move(source), from, to);
}

}  // namespace leadline::ir
