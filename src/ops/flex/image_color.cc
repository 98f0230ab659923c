// SPDX-License-Identifier: Apache-2.0
// Flex ops on the colours of images: RGBToHSV, HSVToRGB, AdjustHue, AdjustSaturation, AdjustContrastv2.
#include <algorithm>
#include <array>
#include <cmath>

#include "ops/flex/families.h"
#include "ops/flex/flex.h"

namespace leadline::ops {
namespace {

template <typename T>
using Pixel = std::array<T, 3>;

/// Hue, saturation and value, each from 0 to 1.
template <typename T>
Pixel<T> to_hsv(const Pixel<T>& rgb) {
  const auto [r, g, b] = rgb;
  const T value = std::max({r, g, b});
  const T range = value - std::min({r, g, b});
  const T saturation = value > 0 ? range / value : T(0);
  T hue = 0;
  if (range > 0) {
    const T norm = T(1) / (T(6) * range);
    if (r == value)
      hue = norm * (g - b);
    else if (g == value)
      hue = norm * (b - r) + T(2) / T(6);
    else
      hue = norm * (r - g) + T(4) / T(6);
    if (hue < 0) hue += T(1);
  }
  return {hue, saturation, value};
}

template <typename T>
Pixel<T> to_rgb(const Pixel<T>& hsv) {
  const auto [h, s, v] = hsv;
  const T sixths = h * T(6);
  const auto clip = [](T x) { return std::clamp(x, T(0), T(1)); };
  const T dr = clip(std::abs(sixths - T(3)) - T(1));
  const T dg = clip(T(2) - std::abs(sixths - T(2)));
  const T db = clip(T(2) - std::abs(sixths - T(4)));
  const T rest = T(1) - s;
  return {(rest + s * dr) * v, (rest + s * dg) * v, (rest + s * db) * v};
}

void require_pixels(const OpContext& c) {
  const Shape& shape = c.input(0).shape;
  c.require(shape.rank() >= 1 && shape[shape.rank() - 1] == 3, "the images have shape {}, expected 3 channels last",
            shape.to_string());
}

void infer_pixels(InferContext& c) {
  node_def(c);
  require_pixels(c);
  require_same_type(c, c.input(0), c.output(0));
  c.set_output_shape(0, c.input(0).shape);
}

/// change(pixel, amount): `amount` is input 1 where there is one.
template <typename T, typename Change>
std::unique_ptr<Kernel> pixel_kernel(Change change) {
  return make_kernel([change](RunContext& run) {
    using Number = Compute<T>;
    const Number amount = run.input_count() > 1 ? static_cast<Number>(*run.input(1).as<float>()) : Number(0);
    const T* in = run.input(0).as<T>();
    T* out = run.output(0).mutable_as<T>();
    run.pool().for_pieces(run.output(0).elements() / 3, 40, [&](int64_t begin, int64_t end) {
      for (int64_t i = 3 * begin; i < 3 * end; i += 3) {
        const Pixel<Number> pixel = {static_cast<Number>(in[i]), static_cast<Number>(in[i + 1]),
                                     static_cast<Number>(in[i + 2])};
        const Pixel<Number> changed = change(pixel, amount);
        for (int64_t k = 0; k < 3; ++k) out[i + k] = static_cast<T>(changed[static_cast<size_t>(k)]);
      }
    });
  });
}

template <bool kToHsv>
std::unique_ptr<Kernel> prepare_conversion(PrepareContext& c) {
  return visit_floating(c, c.input(0).dtype(), [](auto type) {
    return pixel_kernel<decltype(type)>([](const auto& pixel, auto) { return kToHsv ? to_hsv(pixel) : to_rgb(pixel); });
  });
}

void infer_adjust(InferContext& c) {
  c.require_input_type(1, {DType::kFloat32});
  require_elements(c, 1, 1);
  c.require(c.input(0).shape.rank() >= 3, "the images have shape {}, expected rank 3 or more",
            c.input(0).shape.to_string());
  infer_pixels(c);
}

struct Hue {
  template <typename T>
  Pixel<T> operator()(const Pixel<T>& pixel, T delta) const {
    Pixel<T> hsv = to_hsv(pixel);
    hsv[0] += delta;
    hsv[0] -= std::floor(hsv[0]);
    return to_rgb(hsv);
  }
};
struct Saturation {
  template <typename T>
  Pixel<T> operator()(const Pixel<T>& pixel, T scale) const {
    Pixel<T> hsv = to_hsv(pixel);
    hsv[1] = std::clamp(hsv[1] * scale, T(0), T(1));
    return to_rgb(hsv);
  }
};

template <typename Change>
std::unique_ptr<Kernel> prepare_adjust(PrepareContext& c) {
  return visit_floating(c, c.input(0).dtype(), [](auto type) { return pixel_kernel<decltype(type)>(Change{}); });
}

// AdjustContrastv2(images, contrast_factor): distances from the mean of each channel are scaled

void infer_contrast(InferContext& c) {
  node_def(c);
  c.require_input_type(1, {DType::kFloat32});
  require_elements(c, 1, 1);
  c.require(c.input(0).shape.rank() >= 3, "the images have shape {}, expected rank 3 or more",
            c.input(0).shape.to_string());
  require_same_type(c, c.input(0), c.output(0));
  c.set_output_shape(0, c.input(0).shape);
}

std::unique_ptr<Kernel> prepare_contrast(PrepareContext& c) {
  const Shape& shape = c.input(0).shape;
  const int64_t channels = shape[shape.rank() - 1];
  const int64_t pixels = shape[shape.rank() - 2] * shape[shape.rank() - 3];
  return visit_floating(c, c.input(0).dtype(), [=](auto type) {
    using T = decltype(type);
    return make_kernel([=](RunContext& run) {
      using Number = Compute<T>;
      if (run.output(0).elements() == 0) return;
      const auto factor = static_cast<Number>(*run.input(1).as<float>());
      const int64_t images = run.output(0).elements() / (pixels * channels);
      run.pool().for_pieces(images * channels, 4 * static_cast<double>(pixels), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t first = i / channels * pixels * channels + i % channels;
          const T* in = run.input(0).as<T>() + first;
          T* out = run.output(0).mutable_as<T>() + first;
          double sum = 0;
          for (int64_t p = 0; p < pixels; ++p) sum += static_cast<double>(static_cast<Number>(in[p * channels]));
          const auto mean = static_cast<Number>(sum / static_cast<double>(pixels));
          for (int64_t p = 0; p < pixels; ++p) {
            out[p * channels] = static_cast<T>((static_cast<Number>(in[p * channels]) - mean) * factor + mean);
          }
        }
      });
    });
  });
}

}  // namespace

void register_flex_image_color(Registry& registry) {
  constexpr std::string_view kTypes = "f32 f64 f16 bf16";
  registry.add(flex_row("FlexRGBToHSV", 1, 1, infer_pixels, prepare_conversion<true>, kTypes));
  registry.add(flex_row("FlexHSVToRGB", 1, 1, infer_pixels, prepare_conversion<false>, kTypes));
  registry.add(flex_row("FlexAdjustHue", 2, 1, infer_adjust, prepare_adjust<Hue>, kTypes));
  registry.add(flex_row("FlexAdjustSaturation", 2, 1, infer_adjust, prepare_adjust<Saturation>, kTypes));
  registry.add(flex_row("FlexAdjustContrastv2", 2, 1, infer_contrast, prepare_contrast, kTypes));
}

}  // namespace leadline::ops
