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
#include "leadline/names.h"
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

struct GramMatrix;

/// How scales and integers of weights are chosen (rounding.h).
struct Rounding {
  WeightRounding method = WeightRounding::kNearest;
  int output_axis = -1;              // of the weights: each slice makes one output channel; -1: it is not known
  const GramMatrix* gram = nullptr;  // of what they are multiplied with; outlives what is made with it
  int64_t rotation = 1;              // rows were rotated in pieces of this size
  bool planned = false;              // sizes alone matter: scales are not searched for
};

/// Symmetric scales for integers of `bits` bits, one for each slice along `axis`, or one for all when it is -1. In
/// single precision, values that are not finite throw Error(kUnsupported).
std::vector<float> weight_scales(const FloatConstant& constant, int axis, int bits, Arithmetic arithmetic,
                                 const Rounding& rounding = {});

/// Parameters with zero points, by slice as above: the range of each slice, widened to hold 0, is spread over all
/// integers of `bits` bits. Values that are not finite throw Error(kUnsupported).
Quantization asymmetric_weights(const FloatConstant& constant, int axis, int bits, const Rounding& rounding = {});

/// How integers are made of floats: to nearest, halves away from zero, clamped to the type. `narrow`: the lowest
/// integer is left out, so that each has a negative counterpart.
struct LevelRule {
  DType type =
      DType::kInt8;  // int2, int4 (several to a byte, the first in the lowest bits), int8, int16, int32 or int64
  Quantization quantization;
  bool narrow = false;
  Arithmetic arithmetic = Arithmetic::kDouble;
  Rounding rounding = {};  // kComq: of up to 8 bits
};
ir::Source quantized_source(FloatConstant constant, LevelRule rule);

/// Weights of 4 bits whose rows are cut into blocks of `size` values, each with a scale of its own, and those scales as
/// float16. Both are computed from the floats when they are written. `size` divides the last dimension, and the floats
/// are finite.
ir::Source block_source(FloatConstant constant, int64_t size, const Rounding& rounding = {});
ir::Source block_scales_source(FloatConstant constant, int64_t size, const Rounding& rounding = {});

/// Half precision; values beyond its range become its largest.
ir::Source half_source(FloatConstant constant);

}  // namespace leadline::quantize
