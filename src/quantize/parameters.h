// SPDX-License-Identifier: Apache-2.0
// Scales and zero points from ranges, with the arithmetic of TensorFlow's converter.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/quantization.h"
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

/// Quantization of a tensor with one scale.
Quantization per_tensor(const Parameters& parameters);
/// Quantization with zero points 0 and a scale for each index along `axis`, or one scale.
Quantization symmetric(std::vector<float> scales, int axis);

/// Scales of a bias, one for all or one for each channel: input scale * weight scales. Where a value of `bias` would
/// not fit into half of int32, that scale grows, and its weight scale with it. Not for 64 bits, which always fit.
std::vector<float> bias_scales(float input_scale, std::vector<float>& weight_scales, std::span<const float> bias);

}  // namespace leadline::quantize
