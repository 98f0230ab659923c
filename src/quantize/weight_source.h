// SPDX-License-Identifier: Apache-2.0
// Float constants on their way to fewer bits. Scales are computed at once, bytes when the file is written; the floats
// are read where they are, so a constant in a mapped file takes no memory besides the result.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ir/constant_source.h"
#include "ir/graph.h"
#include "ir/sources.h"
#include "leadline/types.h"

namespace leadline::quantize {

/// The contents of a float32 constant, in memory that `owner` keeps or in a source.
struct FloatConstant {
  std::span<const std::byte> data;
  std::shared_ptr<const void> owner;
  ir::Source source;  // instead of `data`
  Shape shape;

  int64_t elements() const { return shape.elements(); }
};

/// Of a dense constant of `graph`, whose bytes stay alive with the result.
FloatConstant float_constant(const ir::Graph& graph, const ir::Value& value);

/// Symmetric scales for integers in [-limit, limit], one for each slice along `axis`, or one for all when it is -1.
/// Slices of zeros get 1 / limit. Throws Error(kUnsupported) when a value is not finite.
std::vector<float> symmetric_scales(const FloatConstant& constant, int axis, int limit);

/// Integers nearest to value / scale, halves away from zero, clamped to [-limit, limit]. `bits` is 8, or 4: two to a
/// byte, the first in the low half.
ir::Source symmetric_source(FloatConstant constant, int axis, std::vector<float> scales, int bits);

/// Half precision; values beyond its range become its largest.
ir::Source half_source(FloatConstant constant);

/// The largest integer of `bits` bits that has a negative counterpart.
constexpr int symmetric_limit(int bits) { return (1 << (bits - 1)) - 1; }

}  // namespace leadline::quantize
