// SPDX-License-Identifier: Apache-2.0
#include "quantize/constants.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/cancel.h"
#include "core/error.h"
#include "core/half.h"
#include "quantize/float_reading.h"
#include "quantize/rounding.h"

namespace leadline::quantize {
namespace {

/// The smallest magnitude that TensorFlow takes a scale from in double precision.
constexpr float kSmallestMagnitude = 0.5e-6F;

/// The integers a type has, without the lowest where `narrow`.
LevelRange limits_of(const LevelRule& rule) {
  const int64_t high = static_cast<int64_t>((uint64_t{1} << (dtype_bits(rule.type) - 1)) - 1);
  return {rule.narrow ? -high : ~high, high};
}

/// Rounds, scales and clamps a float tensor into integers.
class QuantizedSource final : public ir::PlannedSource {
 public:
  QuantizedSource(FloatConstant constant, LevelRule rule)
      : constant_(std::move(constant)), rule_(std::move(rule)), limits_(limits_of(rule_)) {
    view_ = slice_view(constant_.shape, rule_.quantization.per_channel() ? rule_.quantization.axis : -1);
  }
  int64_t bytes() const override { return (constant_.elements() * dtype_bits(rule_.type) + 7) / 8; }
  int64_t extra_bytes() const override { return reading_bytes(constant_); }
  void read(std::span<std::byte> out) const override {
    if (out.empty()) return;
    with_floats(constant_, [&](const std::byte* floats) {
      rule_.arithmetic == Arithmetic::kDouble ? write<double>(floats, out) : write<float>(floats, out);
    });
  }

 private:
  /// Real: the precision to compute with.
  template <typename Real>
  void write(const std::byte* floats, std::span<std::byte> out) const {
    switch (rule_.type) {
      case DType::kInt4:
      case DType::kInt2:
        std::fill(out.begin(), out.end(), std::byte{0});
        return for_each<Real>(floats, [&](int64_t i, int64_t level) { put_packed(out, rule_.type, i, level); });
      case DType::kInt8:
        return write_as<Real, int8_t>(floats, out);
      case DType::kInt16:
        return write_as<Real, int16_t>(floats, out);
      case DType::kInt32:
        return write_as<Real, int32_t>(floats, out);
      default:
        return write_as<Real, int64_t>(floats, out);
    }
  }

  template <typename Real, typename T>
  void write_as(const std::byte* floats, std::span<std::byte> out) const {
    for_each<Real>(floats, [&](int64_t i, int64_t level) {
      const auto value = static_cast<T>(level);
      std::memcpy(out.data() + i * static_cast<int64_t>(sizeof value), &value, sizeof value);
    });
  }

  template <typename Real, typename Put>
  void for_each(const std::byte* floats, const Put& put) const {
    const auto low = static_cast<double>(limits_.low);
    const auto high = static_cast<double>(limits_.high);
    int64_t i = 0;
    PacedCheck check;
    for (int64_t o = 0; o < view_.outer; ++o) {
      for (int64_t s = 0; s < view_.slices; ++s) {
        check.count(16 * view_.inner);
        const float scale = rule_.quantization.scale[static_cast<size_t>(s)];
        const int64_t zero = rule_.quantization.zero_point[static_cast<size_t>(s)];
        const double inverse = 1.0 / static_cast<double>(scale);
        for (int64_t k = 0; k < view_.inner; ++k, ++i) {
          double level;
          if constexpr (std::is_same_v<Real, double>) {
            level = std::round(static_cast<double>(load(floats, i)) * inverse) + static_cast<double>(zero);
          } else {
            level = static_cast<double>(std::round(load(floats, i) / scale)) + static_cast<double>(zero);
          }
          // 2^63 is not an int64: the limits are compared before the conversion. NaN becomes the zero point.
          put(i, level >= high  ? limits_.high
                 : level > low  ? static_cast<int64_t>(level)
                 : level <= low ? limits_.low
                                : zero);
        }
      }
    }
  }

  FloatConstant constant_;
  LevelRule rule_;
  LevelRange limits_;
  SliceView view_;
};

class HalfSource final : public ir::PlannedSource {
 public:
  explicit HalfSource(FloatConstant constant) : constant_(std::move(constant)) {}
  int64_t bytes() const override { return constant_.elements() * 2; }
  int64_t extra_bytes() const override { return reading_bytes(constant_); }
  void read(std::span<std::byte> out) const override {
    constexpr float kLargestHalf = 65504.0F;
    with_floats(constant_, [&](const std::byte* floats) {
      PacedCheck check;
      for (int64_t i = 0; i < constant_.elements(); ++i) {
        check.count(4);
        // A NaN fails both comparisons and stays.
        const uint16_t half = float_to_half(std::clamp(load(floats, i), -kLargestHalf, kLargestHalf));
        std::memcpy(out.data() + i * 2, &half, sizeof(half));
      }
    });
  }

 private:
  FloatConstant constant_;
};

/// The largest magnitude of each slice, NaN aside, and whether all of the values are finite.
struct Magnitudes {
  std::vector<float> largest;
  bool finite = true;
};

Magnitudes magnitudes(const FloatConstant& constant, int axis) {
  const SliceView view = slice_view(constant.shape, axis);
  Magnitudes result{std::vector<float>(static_cast<size_t>(view.slices), 0.0F)};
  with_floats(constant, [&](const std::byte* floats) {
    int64_t i = 0;
    PacedCheck check;
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t s = 0; s < view.slices; ++s) {
        check.count(2 * view.inner);
        float most = result.largest[static_cast<size_t>(s)];
        for (int64_t k = 0; k < view.inner; ++k, ++i) {
          const float magnitude = std::fabs(load(floats, i));
          result.finite &= magnitude <= std::numeric_limits<float>::max();
          most = std::max(most, magnitude);
        }
        result.largest[static_cast<size_t>(s)] = most;
      }
    }
  });
  return result;
}

}  // namespace

FloatConstant float_constant(const ir::Graph& graph, const ir::Value& value) {
  FloatConstant constant;
  constant.shape = value.shape;
  constant.source = value.source;
  if (value.source != nullptr) return constant;
  constant.data = value.data;
  const auto inside = [&](const std::vector<std::byte>& block) {
    return std::less_equal<>()(block.data(), value.data.data()) &&
           std::less_equal<>()(value.data.data() + value.data.size(), block.data() + block.size());
  };
  const auto found =
      std::find_if(graph.storage.begin(), graph.storage.end(), [&](const auto& block) { return inside(*block); });
  if (found != graph.storage.end()) {
    constant.owner = *found;
  } else {
    constant.owner = graph.bytes;
  }
  return constant;
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

std::vector<float> weight_scales(const FloatConstant& constant, int axis, int bits, Arithmetic arithmetic,
                                 const Rounding& rounding) {
  const int limit = (1 << (bits - 1)) - 1;
  auto [scales, finite] = magnitudes(constant, axis);
  require(finite || arithmetic == Arithmetic::kDouble, ErrorCode::kUnsupported,
          "a constant of shape {} holds values that are not finite", constant.shape.to_string());
  for (float& scale : scales) {
    if (arithmetic == Arithmetic::kDouble) {
      scale = std::max(scale, kSmallestMagnitude) / static_cast<float>(limit);
    } else {
      scale = static_cast<float>(static_cast<double>(scale) / limit);
      if (!(scale > 0.0F)) scale = 1.0F / static_cast<float>(limit);
    }
  }
  if (finite) fit_scales(constant, axis, {-limit, limit}, rounding, scales, {});
  return scales;
}

Quantization asymmetric_weights(const FloatConstant& constant, int axis, int bits, const Rounding& rounding) {
  const SliceView view = slice_view(constant.shape, axis);
  struct Ends {
    float low = 0.0F;
    float high = 0.0F;
  };
  std::vector<Ends> ends(static_cast<size_t>(view.slices));
  bool finite = true;
  with_floats(constant, [&](const std::byte* floats) {
    int64_t i = 0;
    PacedCheck check;
    for (int64_t o = 0; o < view.outer; ++o) {
      for (Ends& slice : ends) {
        check.count(2 * view.inner);
        for (int64_t k = 0; k < view.inner; ++k, ++i) {
          const float value = load(floats, i);
          finite &= std::isfinite(value);
          slice.low = std::min(slice.low, value);
          slice.high = std::max(slice.high, value);
        }
      }
    }
  });
  require(finite, ErrorCode::kUnsupported, "a constant of shape {} holds values that are not finite",
          constant.shape.to_string());
  const double levels = static_cast<double>((1 << bits) - 1);
  const double lowest = -static_cast<double>(1 << (bits - 1));
  Quantization result;
  result.axis = std::max(axis, 0);
  for (const Ends& slice : ends) {
    auto scale = static_cast<float>((static_cast<double>(slice.high) - static_cast<double>(slice.low)) / levels);
    if (!(scale > 0.0F)) scale = 1.0F / static_cast<float>(levels);
    result.scale.push_back(scale);
    const double zero = std::round(lowest - static_cast<double>(slice.low) / static_cast<double>(scale));
    result.zero_point.push_back(static_cast<int64_t>(std::clamp(zero, lowest, lowest + levels)));
  }
  const LevelRange range{static_cast<int64_t>(lowest), static_cast<int64_t>(lowest + levels)};
  fit_scales(constant, axis, range, rounding, result.scale, result.zero_point);  // zero points go with any scale
  return result;
}

ir::Source quantized_source(FloatConstant constant, LevelRule rule) {
  const bool known = rule.type == DType::kInt2 || rule.type == DType::kInt4 || rule.type == DType::kInt8 ||
                     rule.type == DType::kInt16 || rule.type == DType::kInt32 || rule.type == DType::kInt64;
  const int64_t bytes = constant.source ? constant.source->bytes() : static_cast<int64_t>(constant.data.size());
  require(known && bytes == constant.elements() * static_cast<int64_t>(sizeof(float)), ErrorCode::kInternal,
          "a constant of shape {} and {} bytes cannot be quantized to {}", constant.shape.to_string(), bytes,
          dtype_name(rule.type));
  const Quantization& quantization = rule.quantization;
  const size_t scales = quantization.scale.size();
  require(scales == quantization.zero_point.size() &&
              (scales == 1 || (scales > 1 && quantization.axis >= 0 && quantization.axis < constant.shape.rank() &&
                               static_cast<int64_t>(scales) == constant.shape[quantization.axis])),
          ErrorCode::kInternal, "{} scales do not go with axis {} of shape {}", scales, quantization.axis,
          constant.shape.to_string());
  const bool descends = rule.rounding.method == WeightRounding::kComq && rule.rounding.output_axis >= 0 &&
                        (scales == 1 || quantization.axis == rule.rounding.output_axis);
  if (descends && dtype_bits(rule.type) <= 8) return descended_source(std::move(constant), std::move(rule));
  return std::make_shared<QuantizedSource>(std::move(constant), std::move(rule));
}

ir::Source half_source(FloatConstant constant) { return std::make_shared<HalfSource>(std::move(constant)); }

}  // namespace leadline::quantize
