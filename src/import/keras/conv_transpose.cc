// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions. The op takes the shape of its result, whose batch is only known at run time.
#include <algorithm>

#include "import/keras/spatial.h"
#include "ops/conv.h"
#include "ops/conv_3d.h"

namespace leadline::keras {
namespace {

/// The shape of the result: one vector of one element for each axis, computed where the size of `x` is not known.
std::vector<int> result_sizes(Call& call, int x, const Window& w, int64_t filters) {
  Emitter& e = call.e;
  std::vector<int> sizes = {e.shape_part(x, 0, 1)};
  const auto explicit_padding = call.config.find("output_padding");
  std::vector<int64_t> output_padding;
  if (explicit_padding) output_padding = call.config.integers("output_padding", w.sizes.size(), 0);
  for (size_t i = 0; i < w.sizes.size(); ++i) {
    const int64_t stride = w.strides[i];
    int64_t more = 0;  // than one stride for each element
    if (w.padding == ir::Padding::kSame) {
      if (explicit_padding) more = w.sizes[i] - stride - 2 * (w.sizes[i] / 2) + output_padding[i];
    } else {
      more = explicit_padding ? w.sizes[i] - stride + output_padding[i] : std::max<int64_t>(w.sizes[i] - stride, 0);
    }
    const auto axis = static_cast<int>(i) + 1;
    const int strided = e.mul(e.shape_part(x, axis, axis + 1), e.ints({small(stride)}));
    sizes.push_back(more == 0 ? strided : e.add(strided, e.ints({small(more)})));
  }
  sizes.push_back(e.ints({small(filters)}));
  return sizes;
}

int bias_after(Call& call, int y, int64_t filters) {
  if (!call.config.boolean("use_bias", true)) return y;
  return call.e.add(y, call.constant(1, "bias", {filters}));
}

bool dilated(const Window& w) {
  return std::any_of(w.dilations.begin(), w.dilations.end(), [](int64_t d) { return d != 1; });
}

/// The kernel in the axes `order`; with zeros between its elements when it is dilated. `kernel` has its own sizes.
int kernel_constant(Call& call, const Window& own, const Dims& kernel, const std::vector<int>& order,
                    const Dims& target) {
  if (!dilated(own)) return call.constant(0, "kernel", kernel, order, target);
  const std::vector<float> values = call.values(0, "kernel", kernel);
  Dims wide = kernel;
  for (size_t i = 0; i < own.sizes.size(); ++i) wide[i] = (kernel[i] - 1) * own.dilations[i] + 1;
  int64_t elements = 1;
  for (const int64_t size : wide) {
    call.refuse_if(size <= 0 || __builtin_mul_overflow(elements, size, &elements) || elements > (1 << 24),
                   "has a dilated kernel of more than 2^24 elements, which is not converted");
  }
  std::vector<float> spread(static_cast<size_t>(elements), 0.0F);
  for (size_t i = 0; i < values.size(); ++i) {
    auto rest = static_cast<int64_t>(i);
    int64_t place = 0;
    int64_t step = 1;
    for (size_t axis = kernel.size(); axis-- > 0;) {
      const int64_t dilation = axis < own.sizes.size() ? own.dilations[axis] : 1;
      place += rest % kernel[axis] * dilation * step;
      rest /= kernel[axis];
      step *= wide[axis];
    }
    spread[static_cast<size_t>(place)] = values[i];
  }
  Emitter& e = call.e;
  const int plain = e.floats(spread, wide);
  if (order.empty()) return plain;
  return e.reshape(e.transpose(plain, order), target);
}

int transpose_2d(Call& call, int x, const Window& w, const Window& own, const Dims& kernel,
                 const std::vector<int>& order, const Dims& filter_dims, const std::vector<int>& sizes) {
  Emitter& e = call.e;
  const int filter = kernel_constant(call, own, kernel, order, filter_dims);
  auto a = std::make_shared<ops::TransposeConvAttributes>();
  a->padding = w.padding;
  a->stride_h = small(w.strides[0]);
  a->stride_w = small(w.strides[1]);
  std::vector<int> inputs = {e.concat(sizes, 0), filter, x};
  const bool has_bias = call.config.boolean("use_bias", true);
  if (has_bias) inputs.push_back(call.constant(1, "bias", {filter_dims[0]}));
  ops::NodeSpec spec;
  spec.op = "TRANSPOSE_CONV";
  spec.inputs = inputs;
  spec.outputs = {{e.name("conv_transpose")}};
  spec.attributes = a;
  spec.version = has_bias ? 3 : 1;
  return e.builder().add(std::move(spec))[0];
}

/// The window of the layer, and the one of the op: dilation becomes zeros between the elements of the kernel.
struct Windows {
  Window layer;
  Window op;
};

Windows read_windows(Call& call, size_t axes) {
  call.refuse_if(call.config.integer("groups", 1) != 1,
                 "has groups, which transposed convolutions do not have; split the channels");
  Windows w;
  w.layer = w.op = read_window(call, "kernel_size", axes);
  for (size_t i = 0; i < axes; ++i) w.op.sizes[i] = (w.layer.sizes[i] - 1) * w.layer.dilations[i] + 1;
  return w;
}

}  // namespace

Outputs conv_1d_transpose(Call& call) {
  const auto [own, w] = read_windows(call, 1);
  const int64_t filters = call.config.integer("filters");
  const int y = with_channels_last(call, [&, &own = own, &w = w](int x) {
    Emitter& e = call.e;
    require(e.rank(x) == 3, ErrorCode::kUnsupported, "the input has rank {}, expected 3", e.rank(x));
    auto sizes = result_sizes(call, x, w, filters);
    sizes.insert(sizes.begin() + 1, e.ints({1}));
    const int64_t channels = e.dims(x).back();
    Window image = w;
    for (auto* list : {&image.sizes, &image.strides}) list->insert(list->begin(), 1);
    const int result = transpose_2d(call, e.expand_dims(x, 1), image, own, {own.sizes[0], filters, channels}, {1, 0, 2},
                                    {filters, 1, w.sizes[0], channels}, sizes);
    return e.squeeze(result, 1);
  });
  return {activation_of(call, y, "activation")};
}

Outputs conv_2d_transpose(Call& call) {
  const auto [own, w] = read_windows(call, 2);
  const int64_t filters = call.config.integer("filters");
  const int y = with_channels_last(call, [&, &own = own, &w = w](int x) {
    require(call.e.rank(x) == 4, ErrorCode::kUnsupported, "the input has rank {}, expected 4", call.e.rank(x));
    const int64_t channels = call.e.dims(x).back();
    return transpose_2d(call, x, w, own, {own.sizes[0], own.sizes[1], filters, channels}, {2, 0, 1, 3},
                        {filters, w.sizes[0], w.sizes[1], channels}, result_sizes(call, x, w, filters));
  });
  return {activation_of(call, y, "activation")};
}

Outputs conv_3d_transpose(Call& call) {
  const auto [own, w] = read_windows(call, 3);
  const int64_t filters = call.config.integer("filters");
  const int y = with_channels_last(call, [&, &own = own, &w = w](int x) {
    Emitter& e = call.e;
    require(e.rank(x) == 5, ErrorCode::kUnsupported, "the input has rank {}, expected 5", e.rank(x));
    const Dims kernel = {own.sizes[0], own.sizes[1], own.sizes[2], filters, e.dims(x).back()};
    ops::Conv3DAttributes a;
    a.padding = w.padding;
    a.stride_d = small(w.strides[0]);
    a.stride_h = small(w.strides[1]);
    a.stride_w = small(w.strides[2]);
    const int shape = e.concat(result_sizes(call, x, w, filters), 0);
    const int result =
        e.builder().node("CONV_3D_TRANSPOSE", {shape, kernel_constant(call, own, kernel, {}, {}), x},
                         e.name("conv_transpose"), std::make_shared<ops::Conv3DAttributes>(a), DType::kFloat32);
    return bias_after(call, result, filters);
  });
  return {activation_of(call, y, "activation")};
}

}  // namespace leadline::keras
