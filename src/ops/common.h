// SPDX-License-Identifier: Apache-2.0
// Small rules that many op families share.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ops/op.h"

namespace leadline::ops {

/// Rank at most 8, dimension by dimension equal or one of them 1; throws with both shapes otherwise.
Shape broadcast_shapes(const OpContext& c, const Shape& a, const Shape& b);

/// An axis counted from the front; negative ones count from the end. Throws when it is outside the rank.
int resolve_axis(const OpContext& c, int64_t axis, int rank);

/// The known contents of int32 or int64 input `i` (also int16/uint8 where an op allows it).
/// Throws when the input has another type.
std::vector<int64_t> known_ints(const OpContext& c, int i);

/// [lo, hi] of a fused activation in real numbers: infinities where there is no bound.
/// Tanh and sign bit have none: TFLite's kernels take them for no activation, and models mean what those compute.
std::pair<float, float> activation_range(const OpContext& c, ir::Activation activation);

/// [lo, hi] of a fused activation in the quantized output's own integers.
std::pair<int32_t, int32_t> quantized_activation_range(const OpContext& c, ir::Activation activation,
                                                       const Operand& output);

/// Smallest and largest level of a quantized type, within 32 bits.
std::pair<int32_t, int32_t> level_range(DType type);

/// Output size and leading padding along one spatial axis, as TFLite computes them.
struct Window {
  int64_t output = 0;
  int64_t pad_before = 0;
  int64_t pad_after = 0;
};
/// Throws when stride, filter or dilation is below 1, or the output would be negative.
Window window(const OpContext& c, ir::Padding padding, int64_t input, int64_t filter, int64_t stride, int64_t dilation);

/// Strides for reading a tensor of shape `from` as if broadcast to `to`: 0 along stretched axes.
std::vector<int64_t> broadcast_strides(const Shape& from, const Shape& to);

/// Calls body with a value of the C++ type of `type` (bool, all integers, float, double); unsupported types throw.
template <typename Body>
auto visit_numeric(const OpContext& c, DType type, Body&& body) {
  switch (type) {
    case DType::kFloat32:
      return body(float{});
    case DType::kFloat64:
      return body(double{});
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
      return body(bool{});
    default:
      c.fail(ErrorCode::kUnsupported, "type {} is not supported", dtype_name(type));
  }
}

}  // namespace leadline::ops
