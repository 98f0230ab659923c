// SPDX-License-Identifier: Apache-2.0
#include "ops/common.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/integer_range.h"

namespace leadline::ops {

Shape broadcast_shapes(const OpContext& c, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape result;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank());
    const int ib = i - (rank - b.rank());
    const int64_t da = ia < 0 ? 1 : a[ia];
    const int64_t db = ib < 0 ? 1 : b[ib];
    c.require(da == db || da == 1 || db == 1, "shapes {} and {} do not broadcast", a.to_string(), b.to_string());
    result.push_back(da == 1 ? db : da);
  }
  return result;
}

int resolve_axis(const OpContext& c, int64_t axis, int rank) {
  c.require(axis >= -rank && axis < rank, "axis {} is outside a tensor of rank {}", axis, rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<int64_t> known_ints(const OpContext& c, int i) {
  const Operand& operand = c.input(i);
  // Lists of sizes, axes, positions: none has as many. What is read here is on the heap, outside of any budget.
  constexpr int64_t kMost = int64_t{1} << 20;
  c.require(operand.shape.elements() <= kMost, "input {} '{}' has {} values, expected at most {}", i,
            operand.value->name, operand.shape.elements(), kMost);
  auto widen = [](auto values) { return std::vector<int64_t>(values.begin(), values.end()); };
  switch (operand.dtype()) {
    case DType::kInt32:
      return widen(operand.values<int32_t>());
    case DType::kInt64:
      return widen(operand.values<int64_t>());
    case DType::kInt16:
      return widen(operand.values<int16_t>());
    case DType::kUInt8:
      return widen(operand.values<uint8_t>());
    default:
      c.fail(ErrorCode::kUnsupported, "input {} '{}' has type {}, expected int32 or int64", i, operand.value->name,
             dtype_name(operand.dtype()));
  }
}

std::pair<float, float> activation_range(const OpContext& c, ir::Activation activation) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  switch (activation) {
    case ir::Activation::kNone:
    case ir::Activation::kTanh:
    case ir::Activation::kSignBit:
      return {-kInf, kInf};
    case ir::Activation::kRelu:
      return {0.0F, kInf};
    case ir::Activation::kReluN1To1:
      return {-1.0F, 1.0F};
    case ir::Activation::kRelu6:
      return {0.0F, 6.0F};
    default:
      c.fail(ErrorCode::kUnsupported, "fused activation {} is not supported", static_cast<int>(activation));
  }
}

std::pair<int32_t, int32_t> level_range(DType type) {
  constexpr int64_t kLo = std::numeric_limits<int32_t>::min();
  constexpr int64_t kHi = std::numeric_limits<int32_t>::max();
  const auto [lo, hi] = integer_range(type).value_or(std::pair{kLo, kHi});
  return {static_cast<int32_t>(std::max(lo, kLo)), static_cast<int32_t>(std::min(hi, kHi))};
}

std::pair<int32_t, int32_t> quantized_activation_range(const OpContext& c, ir::Activation activation,
                                                       const Operand& output) {
  auto [lo, hi] = level_range(output.dtype());
  const auto [real_lo, real_hi] = activation_range(c, activation);
  const Quantization& q = output.quantization();
  auto quantize = [&](float real) {
    const double level = std::round(static_cast<double>(real / q.scale0())) + q.zero_point0();
    return static_cast<int32_t>(std::clamp<double>(level, lo, hi));
  };
  if (std::isfinite(real_lo)) lo = quantize(real_lo);
  if (std::isfinite(real_hi)) hi = quantize(real_hi);
  return {lo, std::max(lo, hi)};
}

Window window(const OpContext& c, ir::Padding padding, int64_t input, int64_t filter, int64_t stride,
              int64_t dilation) {
  c.require(stride >= 1, "stride is {}, expected at least 1", stride);
  c.require(dilation >= 1, "dilation is {}, expected at least 1", dilation);
  c.require(filter >= 1, "filter size is {}, expected at least 1", filter);
  const int64_t reach = (filter - 1) * dilation + 1;
  Window w;
  w.output = padding == ir::Padding::kSame ? (input + stride - 1) / stride : (input + stride - reach) / stride;
  c.require(w.output >= 0, "a window of {} does not fit into {} values", reach, input);
  const int64_t total = std::max<int64_t>(0, (w.output - 1) * stride + reach - input);
  w.pad_before = total / 2;
  w.pad_after = total - total / 2;
  return w;
}

std::vector<int64_t> broadcast_strides(const Shape& from, const Shape& to) {
  std::vector<int64_t> strides(static_cast<size_t>(to.rank()), 0);
  int64_t stride = 1;
  for (int i = from.rank() - 1, j = to.rank() - 1; i >= 0; --i, --j) {
    if (from[i] != 1) strides[static_cast<size_t>(j)] = stride;
    // Only a tensor without elements can overflow here, and nothing walks it.
    stride = static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(from[i]));
  }
  return strides;
}

}  // namespace leadline::ops
