// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions. The op wants the shape of its result, whose batch is only known at run time.
#include <algorithm>

#include "import/keras/spatial.h"
#include "ops/conv.h"
#include "ops/conv_3d.h"

namespace leadline::keras {
namespace {

/// How much of the full result the layer keeps along each axis, and the padding that TensorFlow gets.
std::vector<Emitter::Size> result_sizes(Call& call, int x, const Window& w, int64_t filters) {
  Emitter& e = call.e;
  std::vector<Emitter::Size> sizes = {{x, 0}};
  const auto explicit_padding = call.config.find("output_padding");
  std::vector<int64_t> output_padding;
  if (explicit_padding) output_padding = call.config.integers("output_padding", w.sizes.size(), 0);
  for (size_t i = 0; i < w.sizes.size(); ++i) {
    const int64_t size = e.dims(x)[i + 1];
    call.refuse_if(size < 0, "has an input with an unknown spatial size, which transposed convolutions need");
    const int64_t stride = w.strides[i];
    int64_t length = 0;
    if (w.padding == ir::Padding::kSame) {
      length = size * stride;
      if (explicit_padding) length = (size - 1) * stride + w.sizes[i] - 2 * (w.sizes[i] / 2) + output_padding[i];
    } else {
      length = size * stride + std::max<int64_t>(w.sizes[i] - stride, 0);
      if (explicit_padding) length = (size - 1) * stride + w.sizes[i] + output_padding[i];
    }
    sizes.emplace_back(-1, length);
  }
  sizes.emplace_back(-1, filters);
  return sizes;
}

int bias_after(Call& call, int y, int64_t filters) {
  if (!call.config.boolean("use_bias", true)) return y;
  return call.e.add(y, call.constant(1, "bias", {filters}));
}

int transpose_2d(Call& call, int x, const Window& w, const Dims& kernel, const std::vector<int>& order,
                 const Dims& filter_dims, const std::vector<Emitter::Size>& sizes) {
  Emitter& e = call.e;
  const int filter = call.constant(0, "kernel", kernel, order, filter_dims);
  auto a = std::make_shared<ops::TransposeConvAttributes>();
  a->padding = w.padding;
  a->stride_h = small(w.strides[0]);
  a->stride_w = small(w.strides[1]);
  std::vector<int> inputs = {e.sizes_vector(sizes), filter, x};
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

void refuse_dilation(Call& call, const Window& w) {
  for (const int64_t d : w.dilations) call.refuse_if(d != 1, "is dilated, which transposed convolutions are not");
  call.refuse_if(call.config.integer("groups", 1) != 1, "has groups, which transposed convolutions do not have");
}

}  // namespace

Outputs conv_1d_transpose(Call& call) {
  Window w = read_window(call, "kernel_size", 1);
  refuse_dilation(call, w);
  const int64_t filters = call.config.integer("filters");
  const int y = with_channels_last(call, [&](int x) {
    Emitter& e = call.e;
    require(e.rank(x) == 3, ErrorCode::kUnsupported, "the input has rank {}, expected 3", e.rank(x));
    auto sizes = result_sizes(call, x, w, filters);
    sizes.insert(sizes.begin() + 1, {-1, 1});
    const int64_t channels = e.dims(x).back();
    Window image = w;
    for (auto* list : {&image.sizes, &image.strides}) list->insert(list->begin(), 1);
    const int result = transpose_2d(call, e.expand_dims(x, 1), image, {w.sizes[0], filters, channels}, {1, 0, 2},
                                    {filters, 1, w.sizes[0], channels}, sizes);
    return e.squeeze(result, 1);
  });
  return {activation_of(call, y, "activation")};
}

Outputs conv_2d_transpose(Call& call) {
  const Window w = read_window(call, "kernel_size", 2);
  refuse_dilation(call, w);
  const int64_t filters = call.config.integer("filters");
  const int y = with_channels_last(call, [&](int x) {
    require(call.e.rank(x) == 4, ErrorCode::kUnsupported, "the input has rank {}, expected 4", call.e.rank(x));
    const int64_t channels = call.e.dims(x).back();
    return transpose_2d(call, x, w, {w.sizes[0], w.sizes[1], filters, channels}, {2, 0, 1, 3},
                        {filters, w.sizes[0], w.sizes[1], channels}, result_sizes(call, x, w, filters));
  });
  return {activation_of(call, y, "activation")};
}

Outputs conv_3d_transpose(Call& call) {
  const Window w = read_window(call, "kernel_size", 3);
  refuse_dilation(call, w);
  const int64_t filters = call.config.integer("filters");
  const int y = with_channels_last(call, [&](int x) {
    Emitter& e = call.e;
    require(e.rank(x) == 5, ErrorCode::kUnsupported, "the input has rank {}, expected 5", e.rank(x));
    const Dims kernel = {w.sizes[0], w.sizes[1], w.sizes[2], filters, e.dims(x).back()};
    ops::Conv3DAttributes a;
    a.padding = w.padding;
    a.stride_d = small(w.strides[0]);
    a.stride_h = small(w.strides[1]);
    a.stride_w = small(w.strides[2]);
    const int shape = e.sizes_vector(result_sizes(call, x, w, filters));
    const int result =
        e.builder().node("CONV_3D_TRANSPOSE", {shape, call.constant(0, "kernel", kernel), x}, e.name("conv_transpose"),
                         std::make_shared<ops::Conv3DAttributes>(a), DType::kFloat32);
    return bias_after(call, result, filters);
  });
  return {activation_of(call, y, "activation")};
}

}  // namespace leadline::keras
