// SPDX-License-Identifier: Apache-2.0
// Ops that read an image [batch, height, width, channels] between its pixels, with bilinear weights:
//   TransformTensorBilinear (MediaPipe, versions 1 and 2)  where a 4x4 matrix says; 0 outside the image
//   Resampler (MediaPipe, TensorFlow Addons)               at absolute places (x, y); fades to 0 outside the image
//   DenseImageWarp (TensorFlow Addons)                     at its own place minus a flow (y, x); clamped to the image
#include <algorithm>
#include <cmath>

#include "io/flexbuffer_map.h"
#include "ops/common.h"
#include "ops/families.h"

namespace leadline::ops {
namespace {

/// One image with zeros around it.
struct Image {
  const float* pixels;
  int64_t height, width, channels;

  /// The pixel's channels, or null outside.
  const float* at(int64_t y, int64_t x) const {
    if (y < 0 || x < 0 || y >= height || x >= width) return nullptr;
    return pixels + (y * width + x) * channels;
  }
};

/// Weighted sum of four pixels; null pixels count as zeros.
void blend_pixels(int64_t channels, const float* const (&pixels)[4], const float (&weights)[4], float* result) {
  std::fill_n(result, channels, 0.0F);
  for (int i = 0; i < 4; ++i) {
    if (pixels[i] == nullptr) continue;
    for (int64_t k = 0; k < channels; ++k) result[k] += weights[i] * pixels[i][k];
  }
}

/// The value at (y, x), which is above -1 and below the image's size.
void sample(const Image& image, float y, float x, float* result) {
  const float top = std::floor(y);
  const float left = std::floor(x);
  const auto y0 = static_cast<int64_t>(top);
  const auto x0 = static_cast<int64_t>(left);
  const float down = y - top;
  const float right = x - left;
  blend_pixels(image.channels, {image.at(y0, x0), image.at(y0, x0 + 1), image.at(y0 + 1, x0), image.at(y0 + 1, x0 + 1)},
               {(1 - down) * (1 - right), (1 - down) * right, down * (1 - right), down * right}, result);
}

/// Calls body(image, y, x, pixel) for every pixel of output 0, rows in parallel. `image` is of input 0.
template <typename Body>
void each_pixel(const RunContext& run, const Body& body) {
  const Shape& in = run.input(0).shape;
  const Shape& out = run.output(0).shape;
  if (out.elements() == 0) return;
  run.pool().for_pieces(out[0] * out[1], 8.0 * static_cast<double>(out[2] * out[3]), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t batch = row / out[1];
      const Image image{run.input(0).as<float>() + batch * in[1] * in[2] * in[3], in[1], in[2], in[3]};
      for (int64_t x = 0; x < out[2]; ++x) {
        body(image, row % out[1], x, row * out[2] + x, run.output(0).mutable_as<float>() + (row * out[2] + x) * out[3]);
      }
    }
  });
}

void check_warp_types(const InferContext& c) {
  c.require_input_type(0, {DType::kFloat32});
  c.require_input_type(1, {DType::kFloat32});
  c.require_output_type(0, {DType::kFloat32});
  c.require(c.input(0).shape.rank() == 4, "the image has shape {}, expected rank 4 [batch, height, width, channels]",
            c.input(0).shape.to_string());
}

void infer_transform(InferContext& c) {
  check_warp_types(c);
  const auto map = FlexMap::parse(c.node().custom_options);
  c.require(map.has_value(), "the custom options are not a FlexBuffers map");
  int32_t height = map->get_int("output_height", 0);
  int32_t width = map->get_int("output_width", 0);
  if (c.node().version == 1) {
    const std::string mode = map->get_text("mode").value_or("bilinear");
    c.require(mode == "bilinear", "the mode is '{}', expected bilinear", printable(mode.substr(0, 20)));
    const auto size = map->get_ints("output_size");
    c.require(size && size->size() >= 2, "output_size is not a height and a width");
    height = (*size)[0];
    width = (*size)[1];
  }
  c.require(height > 0 && width > 0, "the output is {} x {}, expected 1 x 1 or more", height, width);
  c.require(c.input(1).shape.elements() == 16, "the matrix has shape {}, expected 16 values",
            c.input(1).shape.to_string());
  const Shape& image = c.input(0).shape;
  c.set_output_shape(0, {image[0], height, width, image[3]});
}

std::unique_ptr<Kernel> prepare_transform(PrepareContext& c) {
  // Version 2 has its matrix for the corners of pixels, version 1 for their middles.
  const float shift = c.node().version == 1 ? 0.0F : 0.5F;
  return make_kernel([shift](RunContext& run) {
    const float* m = run.input(1).as<float>();
    const float x_shift = m[3] + (m[0] * shift + m[1] * shift - shift);
    const float y_shift = m[7] + (m[4] * shift + m[5] * shift - shift);
    each_pixel(run, [&](const Image& image, int64_t out_y, int64_t out_x, int64_t /*pixel*/, float* result) {
      const auto fx = static_cast<float>(out_x);
      const auto fy = static_cast<float>(out_y);
      const float x = m[0] * fx + m[1] * fy + x_shift;
      const float y = m[4] * fx + m[5] * fy + y_shift;
      // Written so that NaN is outside.
      if (x >= 0 && x <= static_cast<float>(image.width - 1) && y >= 0 && y <= static_cast<float>(image.height - 1)) {
        sample(image, y, x, result);
      } else {
        std::fill_n(result, image.channels, 0.0F);
      }
    });
  });
}

void infer_resampler(InferContext& c) {
  check_warp_types(c);
  const Shape& image = c.input(0).shape;
  const Shape& places = c.input(1).shape;
  c.require(places.rank() == 4 && places[0] == image[0] && places[3] == 2,
            "the places have shape {}, expected [{}, h, w, 2]", places.to_string(), image[0]);
  c.set_output_shape(0, {image[0], places[1], places[2], image[3]});
}

std::unique_ptr<Kernel> prepare_resampler(PrepareContext& /*c*/) {
  return make_kernel([](RunContext& run) {
    const float* places = run.input(1).as<float>();
    each_pixel(run, [&](const Image& image, int64_t, int64_t, int64_t pixel, float* result) {
      const float x = places[2 * pixel];
      const float y = places[2 * pixel + 1];
      if (x > -1 && y > -1 && x < static_cast<float>(image.width) && y < static_cast<float>(image.height)) {
        sample(image, y, x, result);
      } else {
        std::fill_n(result, image.channels, 0.0F);
      }
    });
  });
}

void infer_dense_warp(InferContext& c) {
  check_warp_types(c);
  const Shape& image = c.input(0).shape;
  const Shape expected{image[0], image[1], image[2], 2};
  c.require(c.input(1).shape == expected, "the flow has shape {}, expected {}", c.input(1).shape.to_string(),
            expected.to_string());
  c.require(image[1] >= 2 && image[2] >= 2, "the image has shape {}, expected 2 x 2 pixels or more", image.to_string());
  c.set_output_shape(0, image);
}

std::unique_ptr<Kernel> prepare_dense_warp(PrepareContext& /*c*/) {
  return make_kernel([](RunContext& run) {
    const float* flow = run.input(1).as<float>();
    // The pixel before the place and the weight of the next one; a place that is NaN reads the first pixel.
    auto split = [](float place, int64_t size) {
      const float bounded = std::min(std::max(0.0F, std::floor(place)), static_cast<float>(size));
      const int64_t low = std::min(static_cast<int64_t>(bounded), size - 2);
      return std::pair(low, std::min(std::max(0.0F, place - static_cast<float>(low)), 1.0F));
    };
    each_pixel(run, [&](const Image& image, int64_t out_y, int64_t out_x, int64_t pixel, float* result) {
      const auto [y, down] = split(static_cast<float>(out_y) - flow[2 * pixel], image.height);
      const auto [x, right] = split(static_cast<float>(out_x) - flow[2 * pixel + 1], image.width);
      const float* top = image.at(y, x);
      const float* bottom = image.at(y + 1, x);
      for (int64_t k = 0; k < image.channels; ++k) {
        const float above = right * (top[image.channels + k] - top[k]) + top[k];
        const float below = right * (bottom[image.channels + k] - bottom[k]) + bottom[k];
        result[k] = down * (below - above) + above;
      }
    });
  });
}

OpDef warp_op(std::string_view name, int max_version, void (*infer)(InferContext&),
              std::unique_ptr<Kernel> (*prepare)(PrepareContext&)) {
  return {.id = ir::OpId::custom(name),
          .max_version = max_version,
          .min_inputs = 2,
          .max_inputs = 2,
          .required_inputs = 2,
          .infer = infer,
          .prepare = prepare,
          .types = "f32"};
}

}  // namespace

void register_image_warp(Registry& registry) {
  registry.add(warp_op("TransformTensorBilinear", 2, infer_transform, prepare_transform));
  registry.add(warp_op("Resampler", 1, infer_resampler, prepare_resampler));
  registry.add(warp_op("DenseImageWarp", 1, infer_dense_warp, prepare_dense_warp));
}

}  // namespace leadline::ops
