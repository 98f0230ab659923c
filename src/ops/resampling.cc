// SPDX-License-Identifier: Apache-2.0
#include "ops/resampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace leadline::ops {
namespace {

constexpr std::array<std::string_view, 8> kNames = {"lanczos1", "lanczos3", "lanczos5",  "gaussian",
                                                    "box",      "triangle", "keyscubic", "mitchellcubic"};

float radius_of(ResamplingFilter filter) {
  constexpr std::array<float, 8> kRadii = {1, 3, 5, 1.5F, 1, 1, 2, 2};
  return kRadii[static_cast<size_t>(filter)];
}

float lanczos(float x, float radius) {
  constexpr auto kPi = std::numbers::pi_v<float>;
  if (x > radius) return 0;
  if (x <= 1e-3F) return 1;  // as TensorFlow: the quotient is not exact near 0
  return radius * std::sin(kPi * x) * std::sin(kPi * x / radius) / (kPi * kPi * x * x);
}

/// `x` >= 0.
float value_of(ResamplingFilter filter, float x) {
  const float radius = radius_of(filter);
  switch (filter) {
    case ResamplingFilter::kLanczos1:
    case ResamplingFilter::kLanczos3:
    case ResamplingFilter::kLanczos5:
      return lanczos(x, radius);
    case ResamplingFilter::kGaussian: {
      const float sigma = radius / 3;
      return x >= radius ? 0 : std::exp(-x * x / (2 * sigma * sigma));
    }
    case ResamplingFilter::kBox:
      return x < 0.5F ? 1.0F : x == 0.5F ? 0.5F : 0.0F;
    case ResamplingFilter::kTriangle:
      return x < 1 ? 1 - x : 0;
    case ResamplingFilter::kKeys:
      if (x >= 2) return 0;
      return x >= 1 ? ((-0.5F * x + 2.5F) * x - 4) * x + 2 : (1.5F * x - 2.5F) * x * x + 1;
    case ResamplingFilter::kMitchell:
      if (x >= 2) return 0;
      return x >= 1 ? ((-7.0F / 18 * x + 2) * x - 10.0F / 3) * x + 16.0F / 9 : (7.0F / 6 * x - 2) * x * x + 8.0F / 9;
  }
  return 0;
}

}  // namespace

std::optional<ResamplingFilter> resampling_filter(std::string_view name) {
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return {};
  return static_cast<ResamplingFilter>(found - kNames.begin());
}

Resampling::Resampling(ResamplingFilter filter, bool antialias, int64_t input_size, float scale, float translation)
    : filter_(filter),
      input_size_(input_size),
      inverse_scale_(1 / scale),
      offset_(-inverse_scale_ * translation),
      widening_(antialias ? std::max(inverse_scale_, 1.0F) : 1.0F) {}

Resampling::Span Resampling::weights(int64_t at, std::span<float> weights) const {
  const float center = (static_cast<float>(at) + 0.5F) * inverse_scale_ + offset_;
  const bool inside = center >= 0 && center <= static_cast<float>(input_size_);  // false for NaN
  if (!inside) return {};
  // Clamped as floats: a tiny scale makes the filter wider than integers are large.
  const auto last = static_cast<float>(input_size_ - 1);
  const float reach = radius_of(filter_) * widening_;
  const auto first = static_cast<int64_t>(std::clamp(std::ceil(center - reach - 0.5F), 0.0F, last));
  const auto end = static_cast<int64_t>(std::clamp(std::floor(center + reach - 0.5F), 0.0F, last)) + 1;
  const int64_t count = std::clamp<int64_t>(end - first, 0, input_size_ - first);
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const float distance = static_cast<float>(first + i) + 0.5F - center;
    sum += weights[static_cast<size_t>(i)] = value_of(filter_, std::abs(distance / widening_));
  }
  if (std::abs(sum) < 1000 * std::numeric_limits<float>::min()) return {};
  for (float& weight : weights.first(static_cast<size_t>(count))) weight /= sum;
  return {first, count};
}

}  // namespace leadline::ops
