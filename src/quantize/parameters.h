// SPDX-License-Identifier: Apache-2.0
// Scales and zero points from ranges, with the arithmetic of TensorFlow's converter, and constants quantized with them
// while a file is written.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/quantization.h"
#include "ir/graph.h"
#include "ir/sources.h"
#include "leadline/types.h"

namespace leadline::quantize {

/// The smallest and the largest real number that integers have to stand for.
struct RealRange {
  double min = 0.0;
  double max = 0.0;
};

/// The range of a tensor of the float graph; nothing when no sample reached it.
using RangeOf = std::function<std::optional<RealRange>(int subgraph, int tensor, int bits, bool symmetric)>;

/// How integers of one tensor stand for real numbers.
struct Parameters {
  float scale = 1.0F;
  int64_t zero_point = 0;
  friend bool operator==(const Parameters&, const Parameters&) = default;
};

/// Parameters of an activation as int8 (asymmetric) or int16 (zero point 0). The range is widened to hold 0, and when
/// it is next to nothing.
Parameters activation_parameters(RealRange range, DType type);
/// The same of a constant that is used as an activation.
Parameters constant_parameters(std::span<const float> values, DType type);
/// Scales of weights in [-127, 127] with zero point 0, one for each index along `axis`; -1: one for all.
std::vector<float> weight_scales(std::span<const float> values, const Shape& shape, int axis);

/// Quantization of a tensor with one scale.
Quantization per_tensor(const Parameters& parameters);
/// Quantization with zero points 0 and a scale for each index along `axis`, or one scale.
Quantization symmetric(std::vector<float> scales, int axis);

/// Scales of a bias, one for all or one for each channel: input scale * weight scales. Where a value of `bias` would
/// not fit into half of int32, that scale grows, and its weight scale with it. Not for 64 bits, which always fit.
std::vector<float> bias_scales(float input_scale, std::vector<float>& weight_scales, std::span<const float> bias);

/// A float32 constant of `shape` as integers of `type`: rounded to nearest, halves away from zero, and clamped to the
/// type; int8 with zero point 0 and `narrow` to [-127, 127]. Extra memory: the float tensor.
ir::Source quantized_source(ir::Source floats, const Shape& shape, DType type, Quantization quantization, bool narrow);

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

/// The contents of a float32 constant in memory: where they lie already, or as a copy.
class Floats {
 public:
  explicit Floats(const ir::Value& value);
  std::span<const float> values() const { return values_; }

 private:
  std::vector<float> copy_;
  std::span<const float> values_;
};

}  // namespace leadline::quantize
