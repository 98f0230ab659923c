// SPDX-License-Identifier: Apache-2.0
// Layers that change the size of images.
#include "ops/resize.h"

#include <algorithm>

#include "import/keras/importer.h"
#include "import/keras/operations.h"
#include "import/keras/spatial.h"

namespace leadline::keras {
namespace {

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

/// Rows and columns of an image, which must be known.
std::pair<int64_t, int64_t> image_size(Call& call, int x) {
  const Dims d = call.e.dims(x);
  require(d.size() == 4, kBad, "the input has rank {}, expected 4", d.size());
  call.refuse_if(d[1] <= 0 || d[2] <= 0, "has an image of unknown size, which is not converted; fix the input's size");
  return {d[1], d[2]};
}

/// How long `size` is scaled from `from` to `to`, rounded down as Keras rounds it.
int64_t scaled(int64_t size, int64_t to, int64_t from) {
  return static_cast<int64_t>(static_cast<double>(size) * static_cast<double>(to) / static_cast<double>(from));
}

int crop_to_ratio(Call& call, int x, int64_t height, int64_t width) {
  Emitter& e = call.e;
  const auto [rows, columns] = image_size(call, x);
  const int64_t h = std::max<int64_t>(std::min(rows, scaled(columns, height, width)), 1);
  const int64_t w = std::max<int64_t>(std::min(columns, scaled(rows, width, height)), 1);
  if (h != rows) x = e.slice(x, 1, (rows - h) / 2, (rows - h) / 2 + h);
  if (w != columns) x = e.slice(x, 2, (columns - w) / 2, (columns - w) / 2 + w);
  return x;
}

int pad_to_ratio(Call& call, int x, int64_t height, int64_t width) {
  const auto [rows, columns] = image_size(call, x);
  const int64_t top = (std::max(rows, scaled(columns, height, width)) - rows) / 2;
  const int64_t left = (std::max(columns, scaled(rows, width, height)) - columns) / 2;
  const double fill = call.config.number("fill_value", 0.0);
  if (top > 0) return call.e.pad(x, {{0, 0}, {top, top}, {0, 0}, {0, 0}}, fill);
  return call.e.pad(x, {{0, 0}, {0, 0}, {left, left}, {0, 0}}, fill);
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

namespace {

Outputs resize_image(Call& call, int64_t height, int64_t width) {
  call.refuse_if(call.config.boolean("antialias", false),
                 "is antialiased, which TFLite is not; build it with antialias=False");
  require(height > 0 && width > 0 && height <= INT32_MAX && width <= INT32_MAX, kBad, "resized to {} by {}", height,
          width);
  return {with_channels_last(call, [&](int x) {
    int input = call.e.cast(x, DType::kFloat32);
    if (call.config.boolean("crop_to_aspect_ratio", false)) input = crop_to_ratio(call, input, height, width);
    if (call.config.boolean("pad_to_aspect_ratio", false)) input = pad_to_ratio(call, input, height, width);
    return resize_to(call, input, call.e.ints({small(height), small(width)}),
                     call.config.text("interpolation", "bilinear"));
  })};
}

}  // namespace

Outputs resizing(Call& call) { return resize_image(call, call.config.integer("height"), call.config.integer("width")); }

/// keras.ops.image.resize
Outputs resize_operation(Call& call) {
  if (const int computed = computed_sizes(call, SIZE_MAX, "size"); computed >= 0) {
    call.refuse_if(call.config.boolean("antialias", false) || call.config.boolean("crop_to_aspect_ratio", false) ||
                       call.config.boolean("pad_to_aspect_ratio", false),
                   "is antialiased or keeps its aspect ratio at a computed size, which is not converted");
    return {with_channels_last(call, [&](int x) {
      return resize_to(call, call.e.cast(x, DType::kFloat32), computed, call.config.text("interpolation", "bilinear"));
    })};
  }
  const std::vector<int64_t> size = call.config.integers("size", 2, 1);
  return resize_image(call, size[0], size[1]);
}

Outputs center_crop(Call& call) {
  const int64_t height = call.config.integer("height");
  const int64_t width = call.config.integer("width");
  return {with_channels_last(call, [&](int x) {
    Emitter& e = call.e;
    const Dims d = e.dims(x);
    require(d.size() == 4, kBad, "the input has rank {}, expected 4", d.size());
    require(height > 0 && width > 0 && height <= INT32_MAX && width <= INT32_MAX, kBad, "cropped to {} by {}", height,
            width);
    image_size(call, x);
    if (d[1] < height || d[2] < width) {  // Keras enlarges what is too small
      const int cropped = crop_to_ratio(call, e.cast(x, DType::kFloat32), height, width);
      return resize_to(call, cropped, e.ints({small(height), small(width)}), "bilinear");
    }
    const int64_t top = (d[1] - height) / 2;
    const int64_t left = (d[2] - width) / 2;
    return e.slice(e.slice(x, 1, top, top + height), 2, left, left + width);
  })};
}

/// Keras 3 crops in training alone; Keras 2 takes the middle in the ratio that is asked for and resizes it otherwise.
Outputs random_crop(Call& call) {
  if (!call.importer.is_keras_2()) return {call.x()};
  const int64_t height = call.config.integer("height");
  const int64_t width = call.config.integer("width");
  require(height > 0 && width > 0 && height <= INT32_MAX && width <= INT32_MAX, kBad, "cropped to {} by {}", height,
          width);
  const int middle = crop_to_ratio(call, call.e.cast(call.x(), DType::kFloat32), height, width);
  return {resize_to(call, middle, call.e.ints({small(height), small(width)}), "bilinear")};
}

/// Every channel of every image stretched over the whole range, unless it is the same everywhere.
Outputs auto_contrast(Call& call) {
  Emitter& e = call.e;
  const int x = e.cast(call.x(), DType::kFloat32);
  require(e.rank(x) == 4, kBad, "the input has rank {}, expected 4", e.rank(x));
  std::vector<double> range = {0.0, 255.0};
  if (const auto found = call.config.find("value_range")) range = found->numbers(2);
  require(range.size() == 2, kBad, "value_range has {} numbers, expected 2", range.size());
  const int low = e.reduce("REDUCE_MIN", x, {1, 2}, true);
  const int high = e.reduce("REDUCE_MAX", x, {1, 2}, true);
  const int width = e.sub(high, low);
  const int same = e.compare("EQUAL", high, low);
  const int scale = e.div(e.scalar(static_cast<float>(range[1] - range[0])), width);
  const int stretched = e.add(e.mul(e.sub(x, low), scale), range[0]);
  const int clipped =
      e.binary("MAXIMUM", e.binary("MINIMUM", stretched, e.scalar_like(x, range[1])), e.scalar_like(x, range[0]));
  return {e.select(same, x, clipped)};
}

}  // namespace leadline::keras
