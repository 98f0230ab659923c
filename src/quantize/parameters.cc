// SPDX-License-Identifier: Apache-2.0
#include "quantize/parameters.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace leadline::quantize {
namespace {

/// Ranges narrower than this are widened: their scales would overflow what is computed from them.
constexpr double kTiny = 1.0e-6;

/// The largest bias leaves room for the sum it starts.
constexpr double kLargestBias = std::numeric_limits<int32_t>::max() / 2;  // rounds down: TensorFlow's own limit

Parameters from_range(double min, double max, DType type) {
  if (type == DType::kInt16) {
    const auto largest = static_cast<float>(std::max(std::abs(min), std::abs(max)));
    return {largest / 32767.0F, 0};
  }
  // Single precision, as TensorFlow has it: scales and zero points come out the same.
  const float scale = (static_cast<float>(max) - static_cast<float>(min)) / 255.0F;
  const auto at_min = static_cast<float>(-128.0 - min / static_cast<double>(scale));
  return {scale, static_cast<int64_t>(std::round(std::clamp(at_min, -128.0F, 127.0F)))};
}

}  // namespace

Parameters activation_parameters(RealRange range, DType type) {
  double min = std::min(range.min, 0.0);
  double max = std::max(range.max, 0.0);
  if (max - min < kTiny) {
    min -= kTiny;
    max += kTiny;
  }
  return from_range(min, max, type);
}

Parameters constant_parameters(std::span<const float> values, DType type) {
  double min = 0.0;
  double max = 0.0;
  for (const float v : values) {
    min = std::min(min, static_cast<double>(v));
    max = std::max(max, static_cast<double>(v));
  }
  if (max - min <= kTiny) {
    min = std::min(min, -kTiny / 2);
    max = std::max(max, kTiny / 2);
  }
  return from_range(min, max, type);
}

Quantization per_tensor(const Parameters& parameters) {
  Quantization quantization;
  quantization.scale = {parameters.scale};
  quantization.zero_point = {parameters.zero_point};
  return quantization;
}

Quantization symmetric(std::vector<float> scales, int axis) {
  Quantization quantization;
  quantization.zero_point.assign(scales.size(), 0);
  quantization.axis = scales.size() > 1 ? axis : 0;
  quantization.scale = std::move(scales);
  return quantization;
}

std::vector<float> bias_scales(float input_scale, std::vector<float>& weight_scales, std::span<const float> bias) {
  std::vector<float> scales = weight_scales;
  for (float& scale : scales) scale *= input_scale;
  for (size_t i = 0; i < bias.size(); ++i) {
    const size_t channel = scales.size() == bias.size() ? i : 0;
    const double magnitude = std::abs(static_cast<double>(bias[i]));
    if (!(magnitude / static_cast<double>(scales[channel]) > kLargestBias)) continue;
    scales[channel] = static_cast<float>(magnitude / kLargestBias);
    weight_scales[channel] = scales[channel] / input_scale;
  }
  return scales;
}

}  // namespace leadline::quantize
