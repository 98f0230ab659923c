// SPDX-License-Identifier: Apache-2.0
// Functions of a quantized value by table, built as TFLite builds them: 256 entries for 8-bit types, 513 entries
// with linear interpolation for int16.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace leadline::kernels {

/// Scale and zero point of a tensor that is quantized per tensor.
struct Affine {
  float scale = 1.0F;
  int32_t zero_point = 0;
};

/// One entry per value of T, indexed by the value's bits.
template <typename T>
using Lut8 = std::array<T, 256>;

/// Any function of an 8-bit value: f(int32_t value) -> int32_t in T's range.
template <typename T, typename F>
Lut8<T> make_lut8(const F& f) {
  Lut8<T> lut{};
  for (int32_t v = std::numeric_limits<T>::min(); v <= std::numeric_limits<T>::max(); ++v) {
    lut[static_cast<uint8_t>(v)] = static_cast<T>(f(v));
  }
  return lut;
}

/// Converts to int32, saturating; NaN becomes 0.
inline int32_t saturating_int(double value) {
  if (std::isnan(value)) return 0;
  return static_cast<int32_t>(
      std::clamp<double>(value, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
}

/// A real function f(float) -> float between two quantizations.
template <typename T, typename F>
Lut8<T> make_real_lut8(Affine input, Affine output, const F& f) {
  const float inverse_scale = 1.0F / output.scale;
  return make_lut8<T>([&](int32_t v) {
    const float real = input.scale * static_cast<float>(v - input.zero_point);
    const float rescaled = std::round(f(real) * inverse_scale);
    const int32_t level = saturating_int(rescaled + static_cast<float>(output.zero_point));
    return std::clamp<int32_t>(level, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  });
}

/// Samples of a function at every 128th int16 value and at the end, shifted by half the error of interpolation in
/// the middle of each step.
using Lut16 = std::array<int16_t, 513>;

/// f(Real) -> Real between two quantizations given as scale and zero point. TFLite uses float, and double for softmax.
template <typename Real, typename F>
Lut16 make_lut16(Real input_scale, int32_t input_zero_point, Real output_scale, int32_t output_zero_point, const F& f) {
  constexpr int kSteps = 512;
  constexpr Real kMin = std::numeric_limits<int16_t>::min();
  constexpr Real kMax = std::numeric_limits<int16_t>::max();
  const Real input_min = input_scale * (kMin - static_cast<Real>(input_zero_point));
  const Real input_max = input_scale * (kMax - static_cast<Real>(input_zero_point));
  const Real output_min = output_scale * (kMin - static_cast<Real>(output_zero_point));
  const Real output_max = output_scale * (kMax - static_cast<Real>(output_zero_point));
  const Real step = (input_max - input_min) / kSteps;
  const Real half_step = step / 2;
  const Real inverse = Real{65536} / (output_max - output_min);
  auto entry = [&](Real value) {
    return static_cast<int16_t>(std::isnan(value) ? Real{0} : std::clamp(value, kMin, kMax));
  };
  Lut16 lut{};
  for (int i = 0; i < kSteps; ++i) {
    const Real at = input_min + static_cast<Real>(i) * step;
    const Real sample = std::round(f(at) * inverse);
    const Real next = f(input_min + static_cast<Real>(i + 1) * step);
    const Real interpolated = std::round((next * inverse + sample) / 2);
    const Real middle = std::round(f(at + half_step) * inverse);
    lut[static_cast<size_t>(i)] = entry(sample - std::round((interpolated - middle) / 2));
  }
  lut[kSteps] = entry(std::round(f(input_max) * inverse));
  return lut;
}

inline int16_t lookup16(int16_t value, const Lut16& lut) {
  const int step = 256 + (value >> 7);
  const auto index = static_cast<size_t>(step);
  const int32_t base = lut[index];
  // The slope and the sum wrap to 16 bits, as in TFLite.
  const auto slope = static_cast<int16_t>(lut[index + 1] - base);
  const int32_t delta = (slope * (value & 0x7F) + 64) >> 7;
  return static_cast<int16_t>(base + delta);
}

}  // namespace leadline::kernels
