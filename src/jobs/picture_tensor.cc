// SPDX-License-Identifier: Apache-2.0
#include "jobs/picture_tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/cancel.h"
#include "core/error.h"

namespace leadline::jobs {
namespace {

/// Where an output pixel lies between two input pixels along one axis.
struct Between {
  int64_t first = 0;
  int64_t second = 0;
  float part = 0;  // of the second
};

Between place(int64_t output, int64_t outputs, int64_t inputs, PictureOptions::Resize resize) {
  const double ratio = static_cast<double>(inputs) / static_cast<double>(outputs);
  const double centre = (static_cast<double>(output) + 0.5) * ratio;
  if (resize == PictureOptions::Resize::kNearest) {
    const int64_t nearest = std::min(static_cast<int64_t>(centre), inputs - 1);
    return {nearest, nearest, 0};
  }
  const double at = std::max(centre - 0.5, 0.0);
  const int64_t first = std::min(static_cast<int64_t>(at), inputs - 1);
  return {first, std::min(first + 1, inputs - 1), static_cast<float>(at - static_cast<double>(first))};
}

/// The number for a channel from a list of one number, or one for each.
float for_channel(const std::vector<float>& values, int channel, float otherwise) {
  if (values.empty()) return otherwise;
  return values[values.size() == 1 ? 0 : static_cast<size_t>(channel)];
}

void check_numbers(const std::vector<float>& values, int channels, const char* what) {
  require(values.size() <= 1 || std::cmp_equal(values.size(), channels), kBadArgument,
          "{} {} values for pictures of {} channels, expected 1 or {}", values.size(), what, channels, channels);
  for (const float value : values) require(std::isfinite(value), kBadArgument, "the {} is {}", what, value);
}

}  // namespace

Shape PictureForm::shape(int64_t picture_height, int64_t picture_width) const {
  Shape result;
  if (batch_axes == 1) result.push_back(1);
  if (has_channels && planes) result.push_back(channels);
  result.push_back(height > 0 ? height : picture_height);
  result.push_back(width > 0 ? width : picture_width);
  if (has_channels && !planes) result.push_back(channels);
  return result;
}

int64_t PictureForm::bytes(int64_t picture_height, int64_t picture_width) const {
  return shape(picture_height, picture_width).elements() * (dtype == DType::kFloat32 ? 4 : 1);
}

PictureForm picture_form(const SampleInput& input, const PictureOptions& options) {
  const Shape& shape = input.tensor.shape;
  const auto is_channels = [&](int axis) { return !input.takes_any(axis) && (shape[axis] == 1 || shape[axis] == 3); };
  PictureForm form;
  int rows = -1;  // axis of the height; the width follows
  if (shape.rank() == 4 && is_channels(3)) {
    rows = 1;
    form.channels = static_cast<int>(shape[3]);
  } else if (shape.rank() == 4 && is_channels(1)) {
    rows = 2;
    form.planes = true;
    form.channels = static_cast<int>(shape[1]);
  } else if (shape.rank() == 3 && shape[0] == 1) {
    rows = 1;
    form.has_channels = false;
    form.channels = 1;
  } else if (shape.rank() == 3 && is_channels(2)) {
    rows = 0;
    form.batch_axes = 0;
    form.channels = static_cast<int>(shape[2]);
  }
  require(rows >= 0 && (form.batch_axes == 0 || shape[0] == 1), kBadArgument,
          "input '{}' takes {}, which is not the shape of a picture: expected [1, height, width, 1 or 3]", input.name,
          input.shape_text());
  const auto side = [&](int axis, int64_t wanted, const char* name) -> int64_t {
    if (input.takes_any(axis)) return wanted;
    require(wanted == 0 || wanted == shape[axis], kBadArgument, "input '{}' takes pictures of {} {}, not of {}",
            input.name, name, shape[axis], wanted);
    return shape[axis];
  };
  require(options.height >= 0 && options.width >= 0 && options.height <= kMaxPictureSide &&
              options.width <= kMaxPictureSide,
          kBadArgument, "pictures of {} x {} pixels, expected at most {} on each side", options.height, options.width,
          kMaxPictureSide);
  form.height = side(rows, options.height, "height");
  form.width = side(rows + 1, options.width, "width");
  const bool grey = options.colors == PictureOptions::Colors::kGrey;
  require(options.colors == PictureOptions::Colors::kAuto || grey == (form.channels == 1), kBadArgument,
          "input '{}' takes {} channels, which is not {}", input.name, form.channels, grey ? "grey" : "RGB or BGR");
  check_numbers(options.mean, form.channels, "mean");
  check_numbers(options.scale, form.channels, "scale");
  if (!options.mean.empty() || !options.scale.empty()) {
    form.dtype = DType::kFloat32;
  } else if (input.tensor.dtype == DType::kInt8) {
    form.dtype = DType::kInt8;
  }
  return form;
}

void write_picture(const Picture& picture, const PictureForm& form, const PictureOptions& options,
                   std::span<std::byte> out) {
  const int64_t height = form.height > 0 ? form.height : picture.height;
  const int64_t width = form.width > 0 ? form.width : picture.width;
  const auto channels = static_cast<int64_t>(form.channels);
  const bool reversed = options.colors == PictureOptions::Colors::kBgr && channels == 3;
  PacedCheck check;
  for (int64_t y = 0; y < height; ++y) {
    const Between row = place(y, height, picture.height, options.resize);
    const uint8_t* upper = picture.row(row.first);
    const uint8_t* lower = picture.row(row.second);
    check.count(width * channels);
    for (int64_t x = 0; x < width; ++x) {
      const Between column = place(x, width, picture.width, options.resize);
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t from = reversed ? channels - 1 - c : c;
        const auto mix = [&](const uint8_t* line) {
          const float left = line[column.first * channels + from], right = line[column.second * channels + from];
          return left + (right - left) * column.part;
        };
        const float top = mix(upper), bottom = mix(lower);
        const float value = top + (bottom - top) * row.part;
        const int64_t at = form.planes ? (c * height + y) * width + x : (y * width + x) * channels + c;
        if (form.dtype == DType::kFloat32) {
          const float scaled = (value - for_channel(options.mean, static_cast<int>(c), 0)) *
                               for_channel(options.scale, static_cast<int>(c), 1);
          std::memcpy(out.data() + at * 4, &scaled, sizeof(scaled));
        } else {
          const auto byte = static_cast<int>(std::lround(value));
          out[static_cast<size_t>(at)] = static_cast<std::byte>(form.dtype == DType::kInt8 ? byte - 128 : byte);
        }
      }
    }
  }
}

}  // namespace leadline::jobs

namespace leadline {

PictureOptions::Colors parse_picture_colors(std::string_view name) {
  using Colors = PictureOptions::Colors;
  if (name == "auto") return Colors::kAuto;
  if (name == "rgb") return Colors::kRgb;
  if (name == "bgr") return Colors::kBgr;
  if (name == "grey" || name == "gray") return Colors::kGrey;
  fail(ErrorCode::kInvalidArgument, "unknown colors '{}'; expected one of: auto, rgb, bgr, grey", name);
}

PictureOptions::Resize parse_picture_resize(std::string_view name) {
  if (name == "bilinear") return PictureOptions::Resize::kBilinear;
  if (name == "nearest") return PictureOptions::Resize::kNearest;
  fail(ErrorCode::kInvalidArgument, "unknown way to resize '{}'; expected one of: bilinear, nearest", name);
}

}  // namespace leadline
