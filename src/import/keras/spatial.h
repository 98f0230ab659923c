// SPDX-License-Identifier: Apache-2.0
// What convolutions, pooling and padding share: windows over the spatial axes, and the order of the axes.
#pragma once

#include <utility>
#include <vector>

#include "import/keras/layer_functions.h"
#include "ir/attributes.h"

namespace leadline::keras {

/// Runs `body` on the input with channels last, and moves its result to the order of the layer.
template <typename Body>
int with_channels_last(Call& call, Body&& body) {
  Emitter& e = call.e;
  const int x = call.x();
  if (!channels_first(call) || e.rank(x) < 3) return body(x);
  std::vector<int> to = {0};
  for (int axis = 2; axis < e.rank(x); ++axis) to.push_back(axis);
  to.push_back(1);
  const int y = body(e.transpose(x, to));
  std::vector<int> back = {0, e.rank(y) - 1};
  for (int axis = 1; axis + 1 < e.rank(y); ++axis) back.push_back(axis);
  if (e.rank(y) < 3) return y;  // only batch and channels are left
  return e.transpose(y, back);
}

/// Windows along the spatial axes, each entry one axis.
struct Window {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  ir::Padding padding = ir::Padding::kValid;
  bool causal = false;
};

/// Reads the window of a layer; `size_key` is kernel_size or pool_size.
Window read_window(Call& call, const char* size_key, size_t axes);

/// A convolution with variable `index`, `kernel` in the sizes that Keras has; fewer channels than the input has
/// are groups. `bias` is -1 for none.
int convolve(Call& weights, int x, size_t index, std::string_view name, const Dims& kernel, int bias, const Window& w);

/// A window along time as one over an image of height 1.
Window with_height(Window w);
/// CONV_2D with a filter [channels out, height, width, channels in], CONV_3D with one [depth, height, width, channels
/// in, channels out], and DEPTHWISE_CONV_2D with one [1, height, width, channels out]. All need a bias: zeros stand for
/// none.
int emit_conv_2d(Emitter& e, int x, int filter, int bias, const Window& w);
int emit_conv_3d(Emitter& e, int x, int filter, int bias, const Window& w);
int emit_depthwise(Emitter& e, int x, int filter, int bias, int64_t multiplier, const Window& w);
int zero_bias(Emitter& e, int64_t channels);

/// `op` (MAX_POOL_2D, AVERAGE_POOL_2D) over one to three axes of an input with channels last.
int pool_window(Emitter& e, const char* op, int x, const Window& window);

inline int32_t small(int64_t value) { return static_cast<int32_t>(value); }

}  // namespace leadline::keras
