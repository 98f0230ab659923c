// SPDX-License-Identifier: Apache-2.0
// Float constants on their way to fewer bits. Scales are computed at once, bytes when the file is written; the floats
// are read where they are, so a constant in a mapped file takes no memory besides the result.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/quantization.h"
#include "ir/constant_source.h"
#include "ir/graph.h"
#include "ir/sources.h"
#include "leadline/types.h"

namespace leadline::quantize {

/// The contents of a float32 constant, in memory that `owner` keeps or in a source.
struct FloatConstant {
  std::span<const std::byte> data;
  std::shared_ptr<const void> owner = nullptr;
  ir::Source source = nullptr;  // instead of `data`
  Shape shape;

  int64_t elements() const { return shape.elements(); }
};

/// Of a dense constant of `graph`, whose bytes stay alive with the result.
FloatConstant float_constant(const ir::Graph& graph, const ir::Value& value);

/// The contents of a float32 constant in memory: where they lie already, or as a copy.
class Floats {
 public:
  explicit Floats(const ir::Value& value);
  std::span<const float> values() const { return values_; }

 private:
  std::vector<float> copy_;
  std::span<const float> values_;
};

/// The index along one axis of a tensor's elements, which are numbered as they lie in memory.
class AxisIndex {
 public:
  AxisIndex(const Shape& shape, int axis) : size_(shape[axis]) {
    for (int i = axis + 1; i < shape.rank(); ++i) inner_ *= shape[i];
  }
  int64_t operator()(int64_t element) const { return element / inner_ % size_; }

 private:
  int64_t size_;
  int64_t inner_ = 1;
};

/// TensorFlow has two quantizers, which differ in the last bit and in what they do with slices of zeros. A constant
/// comes out as the one that would have made the file computes it.
enum class Arithmetic {
  kDouble,  // value * (1 / scale) in double precision: the one for models that compute in integers
  kSingle,  // value / scale in single precision: the one for models with weights alone as integers
};

/// Symmetric scales for integers of `bits` bits, one for each slice along `axis`, or one for all when it is -1. In
/// single precision, values that are not finite throw Error(kUnsupported).
std::vector<float> weight_scales(const FloatConstant& constant, int axis, int bits, Arithmetic arithmetic);

/// How integers are made of floats: to nearest, halves away from zero, clamped to the type. `narrow`: the lowest
/// integer is left out, so that each has a negative counterpart.
struct LevelRule {
  DType type = DType::kInt8;  // int4 (two to a byte, the first in the low half), int8, int16, int32 or int64
  Quantization quantization;
  bool narrow = false;
  Arithmetic arithmetic = Arithmetic::kDouble;
};
ir::Source quantized_source(FloatConstant constant, LevelRule rule);

/// Half precision; values beyond its range become its largest.
ir::Source half_source(FloatConstant constant);

}  // namespace leadline::quantize
