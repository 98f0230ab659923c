// SPDX-License-Identifier: Apache-2.0
// MediaPipe's ops on landmarks, versions 1 and 2:
//   Landmarks2TransformMatrix  finds the turned box around some landmarks, returns the 4x4 matrix [1,4,4] that takes
//   pixels
//                              of a crop to pixels of the image
//   TransformLandmarks         takes landmarks through the first two rows of such a matrix; a third coordinate stays
// Version 1 has landmarks of rank 4 and other options; see the structs.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>

#include "io/flexbuffer_map.h"
#include "ops/common.h"
#include "ops/families.h"

namespace leadline::ops {
namespace mediapipe_landmarks {
namespace {

constexpr int64_t kMatrixSize = 16;

FlexMap read_map(const OpContext& c) {
  auto map = FlexMap::parse(c.node().custom_options);
  c.require(map.has_value(), "the custom options are not a FlexBuffers map");
  return *map;
}

/// What both versions know: which landmarks matter.
struct BoxOptions {
  int64_t left = 0, right = 0;  // the landmarks whose connection is to become level
  std::vector<int32_t> subset;  // the landmarks in the box
  // Version 1
  float input_h = 0, input_w = 0, output_h = 0, output_w = 0;
  float range = 0;       // landmarks are 0 .. range
  float multiplier = 0;  // of the box
  // Version 2 has output_h and output_w too.
  float target_rotation = 0;
  float scale_x = 0, scale_y = 0;
};

std::pair<float, float> read_size(const OpContext& c, const FlexMap& map, const char* name) {
  const auto size = map.get_ints(name);
  c.require(size && size->size() >= 2 && (*size)[0] > 0 && (*size)[1] > 0, "{} is not a height and a width", name);
  return {static_cast<float>((*size)[0]), static_cast<float>((*size)[1])};
}

BoxOptions read_box_options(const OpContext& c) {
  const FlexMap map = read_map(c);
  BoxOptions o;
  const bool first = c.node().version == 1;
  const char* subset_name = first ? "subset" : "subset_idxs";
  o.subset = map.get_ints(subset_name).value_or(std::vector<int32_t>());
  o.left = map.get_int("left_rotation_idx", 0);
  o.right = map.get_int("right_rotation_idx", 0);
  const int64_t count = c.input(0).shape.elements() / 3;
  auto check = [&](const char* what, int64_t index) {
    c.require(index >= 0 && index < count, "{} has the index {}, but there are {} landmarks", what, index, count);
  };
  check("left_rotation_idx", o.left);
  check("right_rotation_idx", o.right);
  c.require(!o.subset.empty(), "{} is missing or empty", subset_name);
  for (const int32_t index : o.subset) check(subset_name, index);
  if (first) {
    std::tie(o.input_h, o.input_w) = read_size(c, map, "input_hw");
    std::tie(o.output_h, o.output_w) = read_size(c, map, "output_hw");
    o.range = static_cast<float>(map.get_int("landmarks_range", 0));
    o.multiplier = map.get_float("bbox_size_multiplier", 0.0F);
    const int32_t dimensions = map.get_int("dimensions", 0);
    c.require(dimensions == 3, "dimensions is {}, expected 3", dimensions);
    c.require(o.range > 0, "landmarks_range is {}, expected 1 or more", o.range);
    c.require(o.multiplier != 0.0F, "bbox_size_multiplier is missing or 0");
  } else {
    o.output_h = static_cast<float>(map.get_int("output_height", 0));
    o.output_w = static_cast<float>(map.get_int("output_width", 0));
    o.target_rotation = map.get_float("target_rotation_radians", 0.0F);
    o.scale_x = map.get_float("scale_x", 0.0F);
    o.scale_y = map.get_float("scale_y", 0.0F);
    c.require(o.output_h > 0 && o.output_w > 0, "the output is {} x {}, expected 1 x 1 or more", o.output_h,
              o.output_w);
    c.require(o.scale_x > 0 && o.scale_y > 0, "the scales are {} and {}, expected more than 0", o.scale_x, o.scale_y);
  }
  return o;
}

void infer_matrix(InferContext& c) {
  c.require_input_type(0, {DType::kFloat32});
  c.require_output_type(0, {DType::kFloat32});
  const Shape& shape = c.input(0).shape;
  const int rank = c.node().version == 1 ? 4 : 3;
  c.require(shape.rank() == rank, "the landmarks have shape {}, expected rank {}", shape.to_string(), rank);
  read_box_options(c);
  c.set_output_shape(0, {1, 4, 4});
}

/// Rotation, then translation: rows of a 2x3 matrix.
struct Affine {
  double xx = 1, xy = 0, x = 0;
  double yx = 0, yy = 1, y = 0;

  static Affine shift(double dx, double dy) { return {1, 0, dx, 0, 1, dy}; }
  static Affine scale(double sx, double sy) { return {sx, 0, 0, 0, sy, 0}; }
  static Affine turn(double angle) {
    return {std::cos(angle), -std::sin(angle), 0, std::sin(angle), std::cos(angle), 0};
  }
  /// First `b`, then this.
  Affine operator*(const Affine& b) const {
    return {xx * b.xx + xy * b.yx, xx * b.xy + xy * b.yy, xx * b.x + xy * b.y + x,
            yx * b.xx + yy * b.yx, yx * b.xy + yy * b.yy, yx * b.x + yy * b.y + y};
  }
};

struct Box {
  double x_min = std::numeric_limits<double>::infinity(), x_max = -x_min;
  double y_min = x_min, y_max = -x_min;

  double width() const { return x_max - x_min; }
  double height() const { return y_max - y_min; }
};

/// Around the subset, after a turn by `angle`.
Box turned_box(const BoxOptions& o, const float* landmarks, double angle) {
  const Affine turn = Affine::turn(angle);
  Box box;
  for (const int64_t index : o.subset) {
    const double x = landmarks[3 * index];
    const double y = landmarks[3 * index + 1];
    const double turned_x = turn.xx * x + turn.xy * y;
    const double turned_y = turn.yx * x + turn.yy * y;
    box.x_min = std::min(box.x_min, turned_x);
    box.x_max = std::max(box.x_max, turned_x);
    box.y_min = std::min(box.y_min, turned_y);
    box.y_max = std::max(box.y_max, turned_y);
  }
  return box;
}

/// The box's middle before the turn.
Affine shift_to_middle(const Box& box, double angle) {
  const Affine back = Affine::turn(-angle) * Affine::shift((box.x_min + box.x_max) / 2, (box.y_min + box.y_max) / 2);
  return Affine::shift(back.x, back.y);
}

Affine crop_matrix_v1(const BoxOptions& o, const float* landmarks) {
  const double rise = landmarks[3 * o.right + 1] - landmarks[3 * o.left + 1];
  const double run = landmarks[3 * o.right] - landmarks[3 * o.left];
  const double angle = -std::atan(rise / run);
  const Box box = turned_box(o, landmarks, angle);
  const Affine middle = shift_to_middle(box, angle);
  // Pixels to -1 .. 1, the box in that frame, and back to pixels.
  const Affine to_absolute{(o.input_w - 1) / 2, 0, (o.input_w - 1) / 2, 0, (o.input_h - 1) / 2, (o.input_h - 1) / 2};
  const Affine to_relative{2.0 / (o.output_w - 1.0), 0, -1, 0, 2.0 / (o.output_h - 1.0), -1};
  return to_absolute * Affine::shift(middle.x / o.range * 2 - 1, middle.y / o.range * 2 - 1) * Affine::turn(-angle) *
         Affine::scale(box.width() * o.multiplier / o.range, box.height() * o.multiplier / o.range) * to_relative;
}

Affine crop_matrix_v2(const BoxOptions& o, const float* landmarks) {
  const double rise = landmarks[3 * o.right + 1] - landmarks[3 * o.left + 1];
  const double run = landmarks[3 * o.right] - landmarks[3 * o.left];
  const double angle = o.target_rotation - std::atan2(rise, run);
  const Box box = turned_box(o, landmarks, angle);
  return shift_to_middle(box, angle) * Affine::turn(-angle) *
         Affine::scale(o.scale_x * box.width() / o.output_w, o.scale_y * box.height() / o.output_h) *
         Affine::shift(-o.output_w / 2.0, -o.output_h / 2.0);
}

std::unique_ptr<Kernel> prepare_matrix(PrepareContext& c) {
  const bool first = c.node().version == 1;
  return make_kernel([o = read_box_options(c), first](RunContext& run) {
    const float* landmarks = run.input(0).as<float>();
    const Affine m = first ? crop_matrix_v1(o, landmarks) : crop_matrix_v2(o, landmarks);
    std::array<double, kMatrixSize> rows = {m.xx, m.xy, 0, m.x, m.yx, m.yy, 0, m.y, 0, 0, 1, 0, 0, 0, 0, 1};
    float* output = run.output(0).mutable_as<float>();
    std::transform(rows.begin(), rows.end(), output, [](double value) { return static_cast<float>(value); });
  });
}

struct LandmarkOptions {
  int64_t dimensions = 0;
  float scale = 1.0F;  // of the matrix's shift
};

LandmarkOptions read_landmark_options(const OpContext& c) {
  const Shape& shape = c.input(0).shape;
  const bool first = c.node().version == 1;
  const int rank = first ? 4 : 3;
  c.require(shape.rank() == rank, "the landmarks have shape {}, expected rank {}", shape.to_string(), rank);
  LandmarkOptions o{shape[rank - 1]};
  if (first) {
    const FlexMap map = read_map(c);
    o.dimensions = map.get_int("dimensions", 0);
    o.scale = map.get_float("scale", 0.0F);
    c.require(o.scale != 0.0F, "the scale is missing or 0");
  }
  c.require(o.dimensions == 2 || o.dimensions == 3, "landmarks have {} dimensions, expected 2 or 3", o.dimensions);
  c.require(shape[rank - 1] % o.dimensions == 0, "the landmarks' shape {} does not end in a multiple of {}",
            shape.to_string(), o.dimensions);
  return o;
}

void infer_landmarks(InferContext& c) {
  c.require_input_type(0, {DType::kFloat32});
  c.require_input_type(1, {DType::kFloat32});
  c.require_output_type(0, {DType::kFloat32});
  read_landmark_options(c);
  c.require(c.input(1).shape.elements() == kMatrixSize, "the matrix has shape {}, expected 16 values",
            c.input(1).shape.to_string());
  c.set_output_shape(0, c.input(0).shape);
}

std::unique_ptr<Kernel> prepare_landmarks(PrepareContext& c) {
  return make_kernel([o = read_landmark_options(c)](RunContext& run) {
    const float* m = run.input(1).as<float>();
    const float* from = run.input(0).as<float>();
    float* to = run.output(0).mutable_as<float>();
    const int64_t count = run.output(0).elements();
    for (int64_t i = 0; i < count; i += o.dimensions) {
      const float x = from[i];
      const float y = from[i + 1];
      to[i] = m[0] * x + m[1] * y + m[3] * o.scale;
      to[i + 1] = m[4] * x + m[5] * y + m[7] * o.scale;
      if (o.dimensions == 3) to[i + 2] = from[i + 2];
    }
  });
}

}  // namespace
}  // namespace mediapipe_landmarks

void register_mediapipe_landmarks(Registry& registry) {
  using namespace mediapipe_landmarks;
  registry.add({.id = ir::OpId::custom("Landmarks2TransformMatrix"),
                .max_version = 2,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .infer = infer_matrix,
                .prepare = prepare_matrix,
                .types = "f32"});
  registry.add({.id = ir::OpId::custom("TransformLandmarks"),
                .max_version = 2,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .infer = infer_landmarks,
                .prepare = prepare_landmarks,
                .types = "f32"});
}

}  // namespace leadline::ops
