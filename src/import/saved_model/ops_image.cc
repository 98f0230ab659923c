// SPDX-License-Identifier: Apache-2.0
// Images of other sizes: tf.image.resize.
#include <cstring>

#include "import/saved_model/op_functions.h"
#include "ops/resampling.h"
#include "ops/resize.h"

namespace leadline::saved_model {
namespace {

void require_images(OpCall& call, int x) {
  require(call.e.rank(x) == 4, kBad, "the input has {} axes, expected 4", call.e.rank(x));
}

int resized(OpCall& call, const char* op, int x, std::shared_ptr<const ir::Attributes> attributes) {
  require_images(call, x);
  const Dims dims = call.e.dims(x);
  return call.sized(op, {x, call.in32(1)}, call.e.dtype(x), {dims[0], -1, -1, dims[3]}, std::move(attributes));
}

std::array<float, 2> two_floats(OpCall& call, size_t i, const char* what) {
  const auto bytes = call.builder().known(call.in(i));
  std::array<float, 2> values{};
  if (!bytes || call.e.dtype(call.in(i)) != DType::kFloat32 || bytes->size() != sizeof(values)) {
    call.unsupported(
        fmt::format("has a {} that is not known before a run; give the images a fixed height and width, "
                    "or let the op stay TensorFlow's own (select_tf_ops)",
                    what));
  }
  std::memcpy(values.data(), bytes->data(), sizeof(values));
  return values;
}

/// A matrix [1, to, from] that has the weights of one axis in its rows.
int weight_matrix(Emitter& e, const ops::Resampling& resampling, int64_t from, int64_t to) {
  std::vector<float> matrix(static_cast<size_t>(from * to));
  std::vector<float> weights(static_cast<size_t>(from));
  for (int64_t at = 0; at < to; ++at) {
    const ops::Resampling::Span span = resampling.weights(at, weights);
    std::copy_n(weights.begin(), span.count, matrix.begin() + at * from + span.first);
  }
  return e.floats(matrix, {1, to, from});
}

}  // namespace

Outputs resize_bilinear(OpCall& call) {
  ops::ResizeBilinearAttributes a;
  a.align_corners = call.attr_bool("align_corners", false);
  a.half_pixel_centers = call.attr_bool("half_pixel_centers", false);
  const int x = call.e.cast(call.in(), DType::kFloat32);  // the op's result is float for every input
  return {resized(call, "RESIZE_BILINEAR", x, std::make_shared<ops::ResizeBilinearAttributes>(a))};
}

Outputs resize_nearest(OpCall& call) {
  ops::ResizeNearestAttributes a;
  a.align_corners = call.attr_bool("align_corners", false);
  a.half_pixel_centers = call.attr_bool("half_pixel_centers", false);
  return {resized(call, "RESIZE_NEAREST_NEIGHBOR", call.in(), std::make_shared<ops::ResizeNearestAttributes>(a))};
}

/// Either axis is a product with a matrix of weights, which is known as far as sizes and scales are.
Outputs scale_and_translate(OpCall& call) {
  Emitter& e = call.e;
  const int x = e.cast(call.in(), DType::kFloat32);
  require_images(call, x);
  const Dims in = e.dims(x);
  call.refuse_if(
      in[1] < 1 || in[2] < 1 || in[3] < 1,
      "resizes images of unknown size with a filter; give them a fixed height, width and number of channels, "
      "use bilinear without antialias, or let the op stay TensorFlow's own (select_tf_ops)");
  const std::vector<int64_t> size = call.ints(1, "a size");
  require(size.size() == 2 && size[0] > 0 && size[1] > 0, kBad, "its size is not two numbers above 0");
  const auto scale = two_floats(call, 2, "scale");
  const auto translation = two_floats(call, 3, "translation");
  require(scale[0] > 0 && scale[1] > 0, kBad, "its scale is [{}, {}], expected numbers above 0", scale[0], scale[1]);
  const std::string name = call.attr_text("kernel_type", "lanczos3");
  const auto filter = ops::resampling_filter(name);
  require(filter.has_value(), kBad, "its kernel_type '{}' is not known", printable(name));
  constexpr int64_t kMaxWeights = int64_t{1} << 26;
  for (const size_t axis : {0U, 1U}) {
    require(size[axis] <= kMaxWeights / in[axis + 1], ErrorCode::kUnsupported,
            "resizing an axis from {} to {} takes more than {} weights", in[axis + 1], size[axis], kMaxWeights);
  }
  const bool antialias = call.attr_bool("antialias", true);
  const auto matrix = [&](size_t axis) {
    const int64_t from = in[axis + 1];
    return weight_matrix(e, ops::Resampling(*filter, antialias, from, scale[axis], translation[axis]), from,
                         size[axis]);
  };
  const int rows = e.matmul(matrix(0), e.reshape(x, {in[0], in[1], in[2] * in[3]}));
  const int columns = e.matmul(matrix(1), e.reshape(rows, {in[0] < 0 ? -1 : in[0] * size[0], in[2], in[3]}));
  return {e.reshape(columns, {in[0], size[0], size[1], in[3]})};
}

}  // namespace leadline::saved_model
