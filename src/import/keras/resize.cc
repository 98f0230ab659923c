// SPDX-License-Identifier: Apache-2.0
// Layers that change the size of images.
#include "ops/resize.h"

#include "import/keras/spatial.h"

namespace leadline::keras {
namespace {

constexpr ErrorCode kBad = ErrorCode::kInvalidModel;

/// `size` is an int32 vector of two.
int resize_to(Call& call, int x, int size, const std::string& interpolation) {
  Emitter& e = call.e;
  if (interpolation == "nearest") {
    ops::ResizeNearestAttributes a;
    a.half_pixel_centers = true;
    return e.builder().node("RESIZE_NEAREST_NEIGHBOR", {x, size}, e.name("resize"), a);
  }
  call.refuse_if(interpolation != "bilinear",
                 fmt::format("interpolates '{}'; nearest and bilinear are converted", printable(interpolation)));
  ops::ResizeBilinearAttributes a;
  a.half_pixel_centers = true;
  return e.builder().node("RESIZE_BILINEAR", {x, size}, e.name("resize"), a);
}

int enlarge(Call& call, int x, int64_t rows, int64_t columns, const std::string& interpolation) {
  Emitter& e = call.e;
  require(rows > 0 && columns > 0 && rows <= 65536 && columns <= 65536, kBad, "enlarged {} by {} times", rows, columns);
  const int factors = e.ints({small(rows), small(columns)});
  return resize_to(call, x, e.mul(e.shape_part(x, 1, 3), factors), interpolation);
}

}  // namespace

Outputs up_sampling_1d(Call& call) {
  Emitter& e = call.e;
  const int64_t size = call.config.integer("size", 2);
  return {e.squeeze(enlarge(call, e.expand_dims(call.x(), 1), 1, size, "nearest"), 1)};
}

Outputs up_sampling_2d(Call& call) {
  const std::vector<int64_t> size = call.config.integers("size", 2, 2);
  const std::string interpolation = call.config.text("interpolation", "nearest");
  return {with_channels_last(call, [&](int x) {
    require(call.e.rank(x) == 4, kBad, "the input has rank {}, expected 4", call.e.rank(x));
    return enlarge(call, x, size[0], size[1], interpolation);
  })};
}

/// Rows and columns of every slice, then the slices.
Outputs up_sampling_3d(Call& call) {
  const std::vector<int64_t> size = call.config.integers("size", 3, 2);
  return {with_channels_last(call, [&](int x) {
    Emitter& e = call.e;
    const Dims d = e.dims(x);
    require(d.size() == 5, kBad, "the input has rank {}, expected 5", d.size());
    for (size_t i = 1; i < 5; ++i) call.refuse_if(d[i] < 0, "has an input of unknown size, which is not converted");
    const int image = enlarge(call, e.reshape(x, {-1, d[2], d[3], d[4]}), size[1], size[2], "nearest");
    const Dims r = e.dims(image);
    const int slices = enlarge(call, e.reshape(image, {-1, d[1], r[1] * r[2], d[4]}), size[0], 1, "nearest");
    return e.reshape(slices, {-1, d[1] * size[0], r[1], r[2], d[4]});
  })};
}

Outputs resizing(Call& call) {
  call.refuse_if(
      call.config.boolean("crop_to_aspect_ratio", false) || call.config.boolean("pad_to_aspect_ratio", false),
      "keeps the aspect ratio, which is not converted");
  call.refuse_if(call.config.boolean("antialias", false), "is antialiased, which TFLite is not");
  const int64_t height = call.config.integer("height");
  const int64_t width = call.config.integer("width");
  require(height > 0 && width > 0 && height <= INT32_MAX && width <= INT32_MAX, kBad, "resized to {} by {}", height,
          width);
  return {with_channels_last(call, [&](int x) {
    const int input = call.e.cast(x, DType::kFloat32);
    return resize_to(call, input, call.e.ints({small(height), small(width)}),
                     call.config.text("interpolation", "bilinear"));
  })};
}

Outputs center_crop(Call& call) {
  const int64_t height = call.config.integer("height");
  const int64_t width = call.config.integer("width");
  return {with_channels_last(call, [&](int x) {
    Emitter& e = call.e;
    const Dims d = e.dims(x);
    require(d.size() == 4, kBad, "the input has rank {}, expected 4", d.size());
    call.refuse_if(d[1] < height || d[2] < width || height <= 0 || width <= 0,
                   "crops more than there is, or from an unknown size, which is not converted");
    const int64_t top = (d[1] - height) / 2;
    const int64_t left = (d[2] - width) / 2;
    return e.slice(e.slice(x, 1, top, top + height), 2, left, left + width);
  })};
}

}  // namespace leadline::keras
