// SPDX-License-Identifier: Apache-2.0
#include "quantize/parameters.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "core/cancel.h"
#include "core/error.h"

namespace leadline::quantize {
namespace {

/// Ranges narrower than this are widened: their scales would overflow what is computed from them.
constexpr double kTiny = 1.0e-6;

/// The largest bias leaves room for the sum it starts.
constexpr double kLargestBias = std::numeric_limits<int32_t>::max() / 2;  // rounds down: TensorFlow's own limit

int64_t lowest(DType type) {
  switch (type) {
    case DType::kInt8:
      return std::numeric_limits<int8_t>::min();
    case DType::kUInt8:
      return 0;
    case DType::kInt16:
      return std::numeric_limits<int16_t>::min();
    case DType::kInt32:
      return std::numeric_limits<int32_t>::min();
    default:
      return std::numeric_limits<int64_t>::min();
  }
}

int64_t highest(DType type) { return type == DType::kUInt8 ? 255 : ~lowest(type); }

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

std::vector<float> largest_magnitudes(std::span<const float> values, const Shape& shape, int axis) {
  if (axis < 0) {
    float largest = 0.0F;
    for (const float v : values) largest = std::max(largest, std::abs(v));
    return {largest};
  }
  int64_t inner = 1;
  for (int a = axis + 1; a < shape.rank(); ++a) inner *= shape[a];
  std::vector<float> largest(static_cast<size_t>(shape[axis]), 0.0F);
  for (size_t at = 0; at < values.size();) {
    for (float& channel : largest) {
      for (int64_t i = 0; i < inner; ++i) channel = std::max(channel, std::abs(values[at++]));
    }
  }
  return largest;
}

/// Rounds, scales and clamps a float tensor into integers.
class QuantizedSource final : public ir::PlannedSource {
 public:
  QuantizedSource(ir::Source floats, const Shape& shape, DType type, Quantization quantization, bool narrow)
      : floats_(std::move(floats)), type_(type), quantization_(std::move(quantization)), narrow_(narrow) {
    count_ = shape.elements();
    if (quantization_.per_channel()) {
      for (int a = quantization_.axis + 1; a < shape.rank(); ++a) inner_ *= shape[a];
    } else {
      inner_ = std::max<int64_t>(count_, 1);
    }
  }
  int64_t bytes() const override { return count_ * (dtype_bits(type_) / 8); }
  int64_t extra_bytes() const override { return floats_->bytes() + ir::extra_bytes(*floats_); }
  void read(std::span<std::byte> out) const override {
    if (out.empty()) return;
    const auto floats = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(count_));
    floats_->read({reinterpret_cast<std::byte*>(floats.get()), static_cast<size_t>(floats_->bytes())});
    switch (type_) {
      case DType::kInt8:
        return write<int8_t>(floats.get(), out);
      case DType::kInt16:
        return write<int16_t>(floats.get(), out);
      case DType::kInt32:
        return write<int32_t>(floats.get(), out);
      default:
        return write<int64_t>(floats.get(), out);
    }
  }

 private:
  template <typename T>
  void write(const float* floats, std::span<std::byte> out) const {
    const auto low = static_cast<double>(narrow_ ? lowest(type_) + 1 : lowest(type_));
    const auto high = static_cast<double>(highest(type_));
    const auto channels = static_cast<int64_t>(quantization_.scale.size());
    std::byte* to = out.data();
    PacedCheck check;
    for (int64_t at = 0; at < count_;) {
      for (int64_t channel = 0; channel < channels; ++channel) {
        check.count(16 * inner_);
        const double inverse = 1.0 / static_cast<double>(quantization_.scale[static_cast<size_t>(channel)]);
        const auto zero = static_cast<double>(quantization_.zero_point[static_cast<size_t>(channel)]);
        for (int64_t i = 0; i < inner_; ++i, ++at, to += sizeof(T)) {
          const double level = std::round(static_cast<double>(floats[at]) * inverse) + zero;
          // 2^63 is not an int64: the limits are compared before the conversion. NaN becomes the zero point.
          const T value = level >= high  ? static_cast<T>(highest(type_))
                          : level > low  ? static_cast<T>(level)
                          : level <= low ? static_cast<T>(lowest(type_) + (narrow_ ? 1 : 0))
                                         : static_cast<T>(zero);
          std::memcpy(to, &value, sizeof value);
        }
      }
    }
  }

  ir::Source floats_;
  DType type_;
  Quantization quantization_;
  bool narrow_;
  int64_t count_ = 0;
  int64_t inner_ = 1;
};

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

std::vector<float> weight_scales(std::span<const float> values, const Shape& shape, int axis) {
  std::vector<float> scales = largest_magnitudes(values, shape, axis);
  for (float& scale : scales) scale = std::max(scale, static_cast<float>(kTiny / 2)) / 127.0F;
  return scales;
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

ir::Source quantized_source(ir::Source floats, const Shape& shape, DType type, Quantization quantization, bool narrow) {
  const bool known = type == DType::kInt8 || type == DType::kInt16 || type == DType::kInt32 || type == DType::kInt64;
  require(known && floats && floats->bytes() == shape.elements() * static_cast<int64_t>(sizeof(float)),
          ErrorCode::kInternal, "a constant of shape {} cannot be quantized to {}", shape.to_string(),
          dtype_name(type));
  const size_t scales = quantization.scale.size();
  require(scales == quantization.zero_point.size() &&
              (scales == 1 || (scales > 1 && quantization.axis >= 0 && quantization.axis < shape.rank() &&
                               static_cast<int64_t>(scales) == shape[quantization.axis])),
          ErrorCode::kInternal, "{} scales do not go with axis {} of shape {}", scales, quantization.axis,
          shape.to_string());
  return std::make_shared<QuantizedSource>(std::move(floats), shape, type, std::move(quantization), narrow);
}

Floats::Floats(const ir::Value& value) {
  const auto bytes = static_cast<size_t>(ir::constant_bytes(value));
  const size_t count = bytes / sizeof(float);
  if (!value.source && reinterpret_cast<uintptr_t>(value.data.data()) % alignof(float) == 0) {
    values_ = {reinterpret_cast<const float*>(value.data.data()), count};
    return;
  }
  copy_.resize(count);
  const std::span<std::byte> out = std::as_writable_bytes(std::span(copy_));
  if (value.source) {
    value.source->read(out);
  } else if (!out.empty()) {
    std::memcpy(out.data(), value.data.data(), out.size());
  }
  values_ = copy_;
}

}  // namespace leadline::quantize
