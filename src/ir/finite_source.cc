// SPDX-License-Identifier: Apache-2.0
// Infinity has all bits of the exponent set and none of the fraction; the number below it in magnitude is the largest
// finite one, whose bits are one less. Types are seen as integers of their size.
#include <cstring>

#include "core/cancel.h"
#include "core/error.h"
#include "ir/sources.h"

namespace leadline::ir {
namespace {

/// Calls visit(Bits{}, infinity) for types that have infinities; false for others.
template <typename Visit>
bool visit_floats(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::kFloat16:
      return visit(uint16_t{0x7C00}), true;
    case DType::kBFloat16:
      return visit(uint16_t{0x7F80}), true;
    case DType::kFloat32:
      return visit(uint32_t{0x7F800000}), true;
    case DType::kFloat64:
      return visit(uint64_t{0x7FF0000000000000}), true;
    default:
      return false;
  }
}

template <typename Bits>
bool is_infinite(Bits value, Bits infinity) {
  constexpr Bits kSign = Bits{1} << (sizeof(Bits) * 8 - 1);
  return static_cast<Bits>(value & static_cast<Bits>(~kSign)) == infinity;
}

template <typename Bits>
Bits load(const std::byte* at) {
  Bits value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

class Finite final : public PlannedSource {
 public:
  Finite(Source source, DType dtype) : source_(std::move(source)), dtype_(dtype) {}
  int64_t bytes() const override { return source_->bytes(); }
  int64_t extra_bytes() const override { return ir::extra_bytes(*source_); }
  void read(std::span<std::byte> out) const override {
    source_->read(out);
    visit_floats(dtype_, [&](auto infinity) {
      using Bits = decltype(infinity);
      PacedCheck check;
      for (size_t at = 0; at + sizeof(Bits) <= out.size(); at += sizeof(Bits)) {
        check.count(1);
        auto value = load<Bits>(out.data() + at);
        if (!is_infinite(value, infinity)) continue;
        --value;
        std::memcpy(out.data() + at, &value, sizeof(value));
      }
    });
  }

 private:
  Source source_;
  DType dtype_;
};

}  // namespace

Source finite_source(Source source, DType dtype) {
  require(visit_floats(dtype, [](auto) {}), ErrorCode::kInvalidArgument, "{} has no infinities", dtype_name(dtype));
  return std::make_shared<Finite>(std::move(source), dtype);
}

bool has_infinities(std::span<const std::byte> elements, DType dtype) {
  bool found = false;
  visit_floats(dtype, [&](auto infinity) {
    using Bits = decltype(infinity);
    for (size_t at = 0; at + sizeof(Bits) <= elements.size() && !found; at += sizeof(Bits)) {
      found = is_infinite(load<Bits>(elements.data() + at), infinity);
    }
  });
  return found;
}

}  // namespace leadline::ir
