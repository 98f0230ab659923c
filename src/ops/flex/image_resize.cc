// SPDX-License-Identifier: Apache-2.0
// Flex ops that sample images [batch, height, width, channels] at other places: ResizeBicubic, ResizeBilinear,
// ResizeArea, CropAndResize, ImageProjectiveTransformV2 and V3, ExtractImagePatches.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "ops/flex/families.h"
#include "ops/flex/flex.h"

namespace leadline::ops {
namespace {

/// Any real type, as float.
using Load = float (*)(const std::byte* data, int64_t i);

Load loader(const OpContext& c, DType type) {
  if (is_floating(type)) {
    return visit_floating(c, type, [](auto example) -> Load {
      using T = decltype(example);
      return [](const std::byte* data, int64_t i) { return static_cast<float>(reinterpret_cast<const T*>(data)[i]); };
    });
  }
  return visit_numeric(c, type, [](auto example) -> Load {
    using T = decltype(example);
    return [](const std::byte* data, int64_t i) { return static_cast<float>(reinterpret_cast<const T*>(data)[i]); };
  });
}

void require_images(const OpContext& c) {
  c.require(c.input(0).shape.rank() == 4, "the images have shape {}, expected rank 4", c.input(0).shape.to_string());
}

struct Sizes {
  int64_t batch, height, width, channels, out_height, out_width;
  explicit Sizes(const OpContext& c)
      : batch(c.input(0).shape[0]),
        height(c.input(0).shape[1]),
        width(c.input(0).shape[2]),
        channels(c.input(0).shape[3]),
        out_height(c.output(0).shape[1]),
        out_width(c.output(0).shape[2]) {}
};

void infer_image_resize(InferContext& c) {
  node_def(c);
  require_images(c);
  c.require_output_type(0, {DType::kFloat32});
  require_indices(c, 1);
  require_elements(c, 1, 2);
  if (!c.known(1)) return c.defer();
  const std::vector<int64_t> size = known_ints(c, 1);
  const Shape& in = c.input(0).shape;
  c.require(size[0] > 0 && size[1] > 0 && in[1] > 0 && in[2] > 0, "images of {} x {} cannot become {} x {}", in[1],
            in[2], size[0], size[1]);
  c.set_output_shape(0, checked_shape(c, {in[0], size[0], size[1], in[3]}));
}

float scale_of(int64_t from, int64_t to, bool align_corners) {
  return align_corners && to > 1 ? static_cast<float>(from - 1) / static_cast<float>(to - 1)
                                 : static_cast<float>(from) / static_cast<float>(to);
}

/// Up to four places along an axis with their weights.
struct Taps {
  std::array<int64_t, 4> index = {};
  std::array<float, 4> weight = {};
};

constexpr int kTableSize = 1024;  // weights of the cubic are taken at this many places, as TensorFlow does

float cubic_near(float x, float a) { return ((a + 2) * x - (a + 3)) * x * x + 1; }
float cubic_far(float x, float a) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; }

/// Without half-pixel centres borders repeat; with them places outside have no weight.
Taps cubic_taps(int64_t at, float scale, int64_t limit, bool half_pixel) {
  const float a = half_pixel ? -0.5F : -0.75F;
  const float place = half_pixel ? (static_cast<float>(at) + 0.5F) * scale - 0.5F : static_cast<float>(at) * scale;
  const auto base = static_cast<int64_t>(std::floor(place));
  const float delta = place - static_cast<float>(base);
  const auto offset = std::lrint(delta * kTableSize);
  const float x = static_cast<float>(offset) / kTableSize;
  const float rest = static_cast<float>(kTableSize - offset) / kTableSize;
  Taps taps;
  taps.weight = {cubic_far(x + 1, a), cubic_near(x, a), cubic_near(rest, a), cubic_far(rest + 1, a)};
  float sum = 0;
  for (size_t k = 0; k < 4; ++k) {
    const int64_t wanted = base - 1 + static_cast<int64_t>(k);
    taps.index[k] = std::clamp<int64_t>(wanted, 0, limit - 1);
    if (half_pixel && taps.index[k] != wanted) taps.weight[k] = 0;
    sum += taps.weight[k];
  }
  if (half_pixel && std::abs(sum) >= 1000 * std::numeric_limits<float>::min()) {
    for (float& weight : taps.weight) weight /= sum;
  }
  return taps;
}

Taps linear_taps(int64_t at, float scale, int64_t limit, bool half_pixel) {
  const float place = half_pixel ? (static_cast<float>(at) + 0.5F) * scale - 0.5F : static_cast<float>(at) * scale;
  const float base = std::floor(place);
  Taps taps;
  taps.index[0] = std::clamp<int64_t>(static_cast<int64_t>(base), 0, limit - 1);
  taps.index[1] = std::clamp<int64_t>(static_cast<int64_t>(base) + 1, 0, limit - 1);
  taps.weight[0] = 1 - (place - base);
  taps.weight[1] = place - base;
  return taps;
}

template <bool kCubic>
std::unique_ptr<Kernel> prepare_image_resize(PrepareContext& c) {
  const Sizes s(c);
  const bool align = node_def(c).flag("align_corners", false);
  const bool half_pixel = node_def(c).flag("half_pixel_centers", false);
  const float row_scale = scale_of(s.height, s.out_height, align);
  const float column_scale = scale_of(s.width, s.out_width, align);
  const Load load = loader(c, c.input(0).dtype());
  return make_kernel([=](RunContext& run) {
    constexpr size_t kTaps = kCubic ? 4 : 2;
    const auto taps = kCubic ? cubic_taps : linear_taps;
    auto* out = run.output(0).mutable_as<float>();
    const double row_cost = static_cast<double>(s.out_width * s.channels) * (kCubic ? 40 : 12);
    run.pool().for_pieces(s.batch * s.out_height, row_cost, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const Taps rows = taps(line % s.out_height, row_scale, s.height, half_pixel);
        const int64_t image = line / s.out_height * s.height;
        for (int64_t x = 0; x < s.out_width; ++x) {
          const Taps columns = taps(x, column_scale, s.width, half_pixel);
          for (int64_t channel = 0; channel < s.channels; ++channel) {
            float sum = 0;
            for (size_t i = 0; i < kTaps; ++i) {
              const int64_t row = (image + rows.index[i]) * s.width;
              float inner = 0;
              for (size_t j = 0; j < kTaps; ++j) {
                inner += columns.weight[j] * load(run.input(0).data, (row + columns.index[j]) * s.channels + channel);
              }
              sum += rows.weight[i] * inner;
            }
            out[(line * s.out_width + x) * s.channels + channel] = sum;
          }
        }
      }
    });
  });
}

/// ResizeArea: the mean of the area that a pixel of the result covers.
std::unique_ptr<Kernel> prepare_area(PrepareContext& c) {
  const Sizes s(c);
  const bool align = node_def(c).flag("align_corners", false);
  const float row_scale = scale_of(s.height, s.out_height, align);
  const float column_scale = scale_of(s.width, s.out_width, align);
  const Load load = loader(c, c.input(0).dtype());
  return make_kernel([=](RunContext& run) {
    auto* out = run.output(0).mutable_as<float>();
    // How much of [i, i + 1) lies in [from, to).
    const auto covered = [](int64_t i, float from, float to) {
      return std::min(static_cast<float>(i + 1), to) - std::max(static_cast<float>(i), from);
    };
    const double cost = static_cast<double>(s.out_width * s.channels) * (8 + 4.0 * row_scale * column_scale);
    run.pool().for_pieces(s.batch * s.out_height, cost, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const auto y = static_cast<float>(line % s.out_height);
        const int64_t image = line / s.out_height * s.height;
        const float top = y * row_scale;
        const float bottom = (y + 1) * row_scale;
        for (int64_t x = 0; x < s.out_width; ++x) {
          const float left = static_cast<float>(x) * column_scale;
          const float right = static_cast<float>(x + 1) * column_scale;
          for (int64_t channel = 0; channel < s.channels; ++channel) {
            float sum = 0;
            for (auto i = static_cast<int64_t>(std::floor(top)); i < static_cast<int64_t>(std::ceil(bottom)); ++i) {
              const int64_t row = (image + std::clamp<int64_t>(i, 0, s.height - 1)) * s.width;
              for (auto j = static_cast<int64_t>(std::floor(left)); j < static_cast<int64_t>(std::ceil(right)); ++j) {
                const int64_t column = std::clamp<int64_t>(j, 0, s.width - 1);
                sum += covered(i, top, bottom) * covered(j, left, right) *
                       load(run.input(0).data, (row + column) * s.channels + channel);
              }
            }
            out[(line * s.out_width + x) * s.channels + channel] = sum / (row_scale * column_scale);
          }
        }
      }
    });
  });
}

// CropAndResize(image, boxes, box_ind, crop_size)

void infer_crop(InferContext& c) {
  node_def(c);
  require_images(c);
  c.require_input_type(1, {DType::kFloat32});
  c.require_input_type(2, {DType::kInt32});
  require_indices(c, 3);
  require_elements(c, 3, 2);
  c.require_output_type(0, {DType::kFloat32});
  const Shape& boxes = c.input(1).shape;
  c.require(boxes.rank() == 2 && boxes[1] == 4, "the boxes have shape {}, expected [n, 4]", boxes.to_string());
  require_elements(c, 2, boxes[0]);
  if (!c.known(3)) return c.defer();
  const std::vector<int64_t> size = known_ints(c, 3);
  c.require(size[0] > 0 && size[1] > 0, "the crops have {} x {} pixels, expected more than none", size[0], size[1]);
  c.set_output_shape(0, checked_shape(c, {boxes[0], size[0], size[1], c.input(0).shape[3]}));
}

std::unique_ptr<Kernel> prepare_crop(PrepareContext& c) {
  const Sizes s(c);
  const std::string_view method = node_def(c).text("method", "bilinear");
  c.require(method == "bilinear" || method == "nearest", "its method is '{}', expected bilinear or nearest", method);
  const bool nearest = method == "nearest";
  const float outside = node_def(c).number("extrapolation_value", 0.0F);
  const Load load = loader(c, c.input(0).dtype());
  return make_kernel([=](RunContext& run) {
    const auto* boxes = run.input(1).as<float>();
    const auto* images = run.input(2).as<int32_t>();
    auto* out = run.output(0).mutable_as<float>();
    const int64_t count = run.output(0).shape[0];
    for (int64_t b = 0; b < count; ++b) {
      run.require(images[b] >= 0 && images[b] < s.batch, "box {} is of image {}, but there are {}", b, images[b],
                  s.batch);
    }
    const auto place = [](float from, float to, int64_t i, int64_t size, int64_t limit) {
      const auto last = static_cast<float>(limit - 1);
      if (size == 1) return 0.5F * (from + to) * last;
      return from * last + static_cast<float>(i) * ((to - from) * last / static_cast<float>(size - 1));
    };
    const double row_cost = static_cast<double>(s.out_width * s.channels) * 12;
    run.pool().for_pieces(count * s.out_height, row_cost, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t b = line / s.out_height;
        const float* box = boxes + 4 * b;
        const float y = place(box[0], box[2], line % s.out_height, s.out_height, s.height);
        const auto pixel = [&](int64_t row, int64_t column, int64_t channel) {
          return load(run.input(0).data, ((images[b] * s.height + row) * s.width + column) * s.channels + channel);
        };
        for (int64_t x_index = 0; x_index < s.out_width; ++x_index) {
          const float x = place(box[1], box[3], x_index, s.out_width, s.width);
          const bool inside =
              y >= 0 && y <= static_cast<float>(s.height - 1) && x >= 0 && x <= static_cast<float>(s.width - 1);
          for (int64_t channel = 0; channel < s.channels; ++channel) {
            float value = outside;
            if (inside && nearest) {
              value = pixel(static_cast<int64_t>(std::round(y)), static_cast<int64_t>(std::round(x)), channel);
            } else if (inside) {
              const auto top = static_cast<int64_t>(std::floor(y));
              const auto bottom = static_cast<int64_t>(std::ceil(y));
              const auto left = static_cast<int64_t>(std::floor(x));
              const auto right = static_cast<int64_t>(std::ceil(x));
              const float dx = x - static_cast<float>(left);
              const float upper =
                  pixel(top, left, channel) + (pixel(top, right, channel) - pixel(top, left, channel)) * dx;
              const float lower =
                  pixel(bottom, left, channel) + (pixel(bottom, right, channel) - pixel(bottom, left, channel)) * dx;
              value = upper + (lower - upper) * (y - static_cast<float>(top));
            }
            out[(line * s.out_width + x_index) * s.channels + channel] = value;
          }
        }
      }
    });
  });
}

// ImageProjectiveTransformV2(images, transforms, output_shape), V3 with the value outside

void infer_projective(InferContext& c) {
  node_def(c);
  require_images(c);
  c.require_input_type(0, {DType::kFloat32, DType::kFloat64, DType::kUInt8, DType::kInt32, DType::kInt64});
  require_same_type(c, c.input(0), c.output(0));
  c.require_input_type(1, {DType::kFloat32});
  require_indices(c, 2);
  require_elements(c, 2, 2);
  if (c.input_count() > 3) {
    c.require_input_type(3, {DType::kFloat32});
    require_elements(c, 3, 1);
  }
  const Shape& transforms = c.input(1).shape;
  const Shape& images = c.input(0).shape;
  c.require(transforms.rank() == 2 && transforms[1] == 8 && (transforms[0] == 1 || transforms[0] == images[0]),
            "the transforms have shape {}, expected [1, 8] or [{}, 8]", transforms.to_string(), images[0]);
  if (!c.known(2)) return c.defer();
  const std::vector<int64_t> size = known_ints(c, 2);
  c.set_output_shape(0, checked_shape(c, {images[0], size[0], size[1], images[3]}));
}

enum class Border : uint8_t { kConstant, kReflect, kWrap, kNearest };

/// Where a place outside [0, size) is read; outside it stays for constants.
float map_border(float at, int64_t size, Border border) {
  const auto length = static_cast<float>(size);
  if (size <= 1 && border != Border::kConstant) return 0;
  switch (border) {
    case Border::kReflect: {
      float in = at;
      if (in < 0) {
        const float twice = 2 * length;
        if (in < twice) in = twice * std::trunc(-in / twice) + in;
        return std::clamp(in < -length ? in + twice : -in - 1, 0.0F, length - 1);
      }
      if (in <= length - 1) return in;
      const float twice = 2 * length;
      in -= twice * std::trunc(in / twice);
      if (in >= length) in = twice - in - 1;
      return std::clamp(in, 0.0F, length - 1);
    }
    case Border::kWrap: {
      float in = at;
      if (in < 0) {
        in += length * (std::trunc(-in / (length - 1)) + 1);
      } else if (in > length - 1) {
        in -= length * std::trunc(in / (length - 1));
      }
      return std::clamp(in, 0.0F, length - 1);
    }
    case Border::kNearest:
      return std::clamp(at, 0.0F, length - 1);
    default:
      return at;
  }
}

template <typename T>
struct Projection {
  const T* image;
  int64_t height, width, channels;
  float fill;

  float read(int64_t y, int64_t x, int64_t channel) const {
    const bool inside = y >= 0 && y < height && x >= 0 && x < width;
    return inside ? static_cast<float>(image[(y * width + x) * channels + channel]) : fill;
  }
  float linear(float y, float x, int64_t channel) const {
    const float top = std::floor(y);
    const float left = std::floor(x);
    const auto row = static_cast<int64_t>(top);
    const auto column = static_cast<int64_t>(left);
    const float upper = (left + 1 - x) * read(row, column, channel) + (x - left) * read(row, column + 1, channel);
    const float lower =
        (left + 1 - x) * read(row + 1, column, channel) + (x - left) * read(row + 1, column + 1, channel);
    return (top + 1 - y) * upper + (y - top) * lower;
  }
};

template <typename T>
std::unique_ptr<Kernel> projective_kernel(const Sizes& s, bool nearest, Border border) {
  return make_kernel([=](RunContext& run) {
    const bool one = run.input(1).shape[0] == 1;
    const float fill = run.input_count() > 3 ? *run.input(3).as<float>() : 0.0F;
    T* out = run.output(0).mutable_as<T>();
    const double cost = static_cast<double>(s.out_width * s.channels) * 24;
    run.pool().for_pieces(s.batch * s.out_height, cost, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t b = line / s.out_height;
        const auto row = static_cast<float>(line % s.out_height);
        const float* t = run.input(1).as<float>() + (one ? 0 : 8 * b);
        const Projection<T> from{run.input(0).as<T>() + b * s.height * s.width * s.channels, s.height, s.width,
                                 s.channels, fill};
        for (int64_t x = 0; x < s.out_width; ++x) {
          const auto column = static_cast<float>(x);
          const float scale = t[6] * column + t[7] * row + 1;
          const float in_x = map_border((t[0] * column + t[1] * row + t[2]) / scale, s.width, border);
          const float in_y = map_border((t[3] * column + t[4] * row + t[5]) / scale, s.height, border);
          // Far places (and no numbers) do not fit an index; they are outside.
          constexpr float kFar = 1e9F;
          const bool near = scale != 0 && std::abs(in_x) < kFar && std::abs(in_y) < kFar;
          for (int64_t channel = 0; channel < s.channels; ++channel) {
            float value = fill;
            if (near) {
              value =
                  nearest ? from.read(std::lround(in_y), std::lround(in_x), channel) : from.linear(in_y, in_x, channel);
            }
            out[(line * s.out_width + x) * s.channels + channel] = static_cast<T>(value);
          }
        }
      }
    });
  });
}

std::unique_ptr<Kernel> prepare_projective(PrepareContext& c) {
  const std::string_view method = node_def(c).text("interpolation", "NEAREST");
  c.require(method == "NEAREST" || method == "BILINEAR", "its interpolation is '{}', expected NEAREST or BILINEAR",
            method);
  const std::string_view mode = node_def(c).text("fill_mode", "CONSTANT");
  constexpr std::array<std::string_view, 4> kModes = {"CONSTANT", "REFLECT", "WRAP", "NEAREST"};
  const auto found = std::find(kModes.begin(), kModes.end(), mode);
  c.require(found != kModes.end(), "its fill_mode is '{}', expected CONSTANT, REFLECT, WRAP or NEAREST", mode);
  const auto border = static_cast<Border>(found - kModes.begin());
  const Sizes s(c);
  return visit_numeric(c, c.input(0).dtype(),
                       [&](auto type) { return projective_kernel<decltype(type)>(s, method == "NEAREST", border); });
}

// ExtractImagePatches(images), of any type

struct Patches {
  std::array<int64_t, 2> size, stride, rate, before, count;
  Patches(const OpContext& c, const Shape& in) {
    const auto pair = [&](std::string_view name) {
      const std::vector<int64_t> given = node_def(c).integers(name);
      c.require(given.size() == 4 && given[0] == 1 && given[3] == 1 && given[1] > 0 && given[2] > 0 &&
                    std::max(given[1], given[2]) <= std::numeric_limits<int32_t>::max(),
                "its attribute {} is not [1, rows, columns, 1]", name);
      return std::array<int64_t, 2>{given[1], given[2]};
    };
    size = pair("ksizes");
    stride = pair("strides");
    rate = pair("rates");
    const std::string_view padding = node_def(c).text("padding", "");
    c.require(padding == "SAME" || padding == "VALID", "its padding is '{}', expected SAME or VALID", padding);
    for (size_t i = 0; i < 2; ++i) {
      const Window w = window(c, padding == "SAME" ? ir::Padding::kSame : ir::Padding::kValid,
                              in[1 + static_cast<int>(i)], size[i], stride[i], rate[i]);
      before[i] = w.pad_before;
      count[i] = w.output;
    }
  }
};

void infer_patches(InferContext& c) {
  require_images(c);
  require_movable(c, c.input(0), {});
  require_same_type(c, c.input(0), c.output(0));
  const Shape& in = c.input(0).shape;
  const Patches p(c, in);
  const int64_t depth = checked_multiply(c, checked_multiply(c, p.size[0], p.size[1]), in[3]);
  c.set_output_shape(0, {in[0], p.count[0], p.count[1], depth});
}

std::unique_ptr<Kernel> prepare_patches(PrepareContext& c) {
  const Patches p(c, c.input(0).shape);
  const Sizes s(c);
  const int64_t bytes = element_bytes(c.input(0).dtype()) * s.channels;
  return make_kernel([=](RunContext& run) {
    const int64_t patch = p.size[0] * p.size[1] * bytes;
    const double cost = static_cast<double>(s.out_width * patch) * kByteCost * 4;
    run.pool().for_pieces(s.batch * s.out_height, cost, [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        std::byte* to = run.output(0).data + line * s.out_width * patch;
        const int64_t image = line / s.out_height * s.height;
        for (int64_t x = 0; x < s.out_width; ++x) {
          for (int64_t i = 0; i < p.size[0]; ++i) {
            const int64_t row = line % s.out_height * p.stride[0] - p.before[0] + i * p.rate[0];
            for (int64_t j = 0; j < p.size[1]; ++j, to += bytes) {
              const int64_t column = x * p.stride[1] - p.before[1] + j * p.rate[1];
              const bool inside = row >= 0 && row < s.height && column >= 0 && column < s.width;
              if (inside) {
                std::memcpy(to, run.input(0).data + ((image + row) * s.width + column) * bytes,
                            static_cast<size_t>(bytes));
              } else {
                std::memset(to, 0, static_cast<size_t>(bytes));
              }
            }
          }
        }
      }
    });
  });
}

}  // namespace

void register_flex_image_resize(Registry& registry) {
  constexpr std::string_view kTypes = "real numbers to f32";
  registry.add(flex_row("FlexResizeBicubic", 2, 1, infer_image_resize, prepare_image_resize<true>, kTypes));
  registry.add(flex_row("FlexResizeBilinear", 2, 1, infer_image_resize, prepare_image_resize<false>, kTypes));
  registry.add(flex_row("FlexResizeArea", 2, 1, infer_image_resize, prepare_area, kTypes));
  registry.add(flex_row("FlexCropAndResize", 4, 1, infer_crop, prepare_crop, kTypes));
  registry.add(
      flex_row("FlexImageProjectiveTransformV2", 3, 1, infer_projective, prepare_projective, "f32 f64 u8 i32 i64"));
  registry.add(
      flex_row("FlexImageProjectiveTransformV3", 4, 1, infer_projective, prepare_projective, "f32 f64 u8 i32 i64"));
  registry.add(flex_row("FlexExtractImagePatches", 1, 1, infer_patches, prepare_patches, "any of fixed size"));
}

}  // namespace leadline::ops
