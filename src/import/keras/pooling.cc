// SPDX-License-Identifier: Apache-2.0
// Pooling over windows and over everything.
#include "ops/pooling.h"

#include "import/keras/spatial.h"

namespace leadline::keras {
namespace {

int pool_image(Emitter& e, const char* op, int x, const Window& w, size_t row_axis) {
  ops::PoolAttributes a;
  a.padding = w.padding;
  a.filter_height = small(w.sizes[row_axis]);
  a.filter_width = small(w.sizes[row_axis + 1]);
  a.stride_h = small(w.strides[row_axis]);
  a.stride_w = small(w.strides[row_axis + 1]);
  return e.builder().node(op, {x}, e.name(op), a);
}

/// Three axes are two poolings: rows and columns of every slice, then the slices. Means of means are right because
/// every window is a product of intervals.
int pool_volume(Emitter& e, const char* op, int x, const Window& w) {
  const Dims d = e.dims(x);
  for (size_t i = 1; i < 5; ++i) {
    require(d[i] >= 0, ErrorCode::kUnsupported, "pooling over three axes needs known sizes");
  }
  const int rows = pool_image(e, op, e.reshape(x, {-1, d[2], d[3], d[4]}), w, 1);
  const Dims r = e.dims(rows);
  Window depth;
  depth.padding = w.padding;
  depth.sizes = {w.sizes[0], 1};
  depth.strides = {w.strides[0], 1};
  const int slices = pool_image(e, op, e.reshape(rows, {-1, d[1], r[1] * r[2], d[4]}), depth, 0);
  return e.reshape(slices, {-1, e.dims(slices)[1], r[1], r[2], d[4]});
}

Outputs pool(Call& call, const char* op) {
  const int rank = call.e.rank(call.x());
  const char digit = call.layer.class_name.size() > 1 ? call.layer.class_name[call.layer.class_name.size() - 2] : '0';
  const size_t axes = digit >= '1' && digit <= '3' ? static_cast<size_t>(digit - '0') : 0;
  require(axes != 0 && rank == static_cast<int>(axes) + 2, kBad, "the input has rank {}, expected {}", rank, axes + 2);
  const Window w = read_window(call, "pool_size", axes);
  return {with_channels_last(call, [&](int x) { return pool_window(call.e, op, x, w); })};
}

Outputs pool_all(Call& call, const char* op) {
  Emitter& e = call.e;
  std::vector<int32_t> axes;
  const int first = channels_first(call) ? 2 : 1;
  for (int axis = first; axis < e.rank(call.x()) - (first == 1 ? 1 : 0); ++axis) axes.push_back(axis);
  return {e.reduce(op, call.x(), axes, call.config.boolean("keepdims", false))};
}

}  // namespace

int pool_window(Emitter& e, const char* op, int x, const Window& window) {
  if (window.sizes.size() == 3) return pool_volume(e, op, x, window);
  if (window.sizes.size() == 2) return pool_image(e, op, x, window, 0);
  Window w = window;
  w.sizes.insert(w.sizes.begin(), 1);
  w.strides.insert(w.strides.begin(), 1);
  return e.squeeze(pool_image(e, op, e.expand_dims(x, 1), w, 0), 1);
}

Outputs max_pooling(Call& call) { return pool(call, "MAX_POOL_2D"); }
Outputs average_pooling(Call& call) { return pool(call, "AVERAGE_POOL_2D"); }
Outputs global_max_pooling(Call& call) { return pool_all(call, "REDUCE_MAX"); }
Outputs global_average_pooling(Call& call) {
  Emitter& e = call.e;
  const int x = call.x();
  if (call.mask() < 0 || e.rank(x) != 3) return pool_all(call, "MEAN");
  call.refuse_if(channels_first(call), "has a mask and channels first, which is not converted");
  // The mean of the steps that count.
  const int counts = e.expand_dims(e.cast(call.mask(), DType::kFloat32), 2);
  const bool keep = call.config.boolean("keepdims", false);
  return {e.div(e.reduce("SUM", e.mul(x, counts), {1}, keep), e.reduce("SUM", counts, {1}, keep))};
}

}  // namespace leadline::keras
