// SPDX-License-Identifier: Apache-2.0
// Convolutions. Those over one axis are convolutions over an image of height 1.
#include "ops/conv.h"

#include "import/keras/spatial.h"
#include "ops/conv_3d.h"

namespace leadline::keras {
namespace {

/// Zeros in front, so that no output sees what comes after it. `axis` is the one of time.
int causal_padding(Emitter& e, int x, const Window& w, int axis) {
  std::vector<std::pair<int64_t, int64_t>> pads(static_cast<size_t>(e.rank(x)));
  pads[static_cast<size_t>(axis)].first = (w.sizes.back() - 1) * w.dilations.back();
  return e.pad(x, pads);
}

}  // namespace

Window with_height(Window w) {
  for (auto* list : {&w.sizes, &w.strides, &w.dilations}) list->insert(list->begin(), 1);
  return w;
}

int emit_conv_2d(Emitter& e, int x, int filter, int bias, const Window& w) {
  ops::Conv2DAttributes a;
  a.padding = w.padding;
  a.stride_h = small(w.strides[0]);
  a.stride_w = small(w.strides[1]);
  a.dilation_h = small(w.dilations[0]);
  a.dilation_w = small(w.dilations[1]);
  if (w.causal) x = causal_padding(e, x, w, 2);
  return e.builder().node("CONV_2D", {x, filter, bias}, e.name("Conv2D"), a);
}

int emit_depthwise(Emitter& e, int x, int filter, int bias, int64_t multiplier, const Window& w) {
  ops::DepthwiseConv2DAttributes a;
  a.padding = w.padding;
  a.stride_h = small(w.strides[0]);
  a.stride_w = small(w.strides[1]);
  a.dilation_h = small(w.dilations[0]);
  a.dilation_w = small(w.dilations[1]);
  a.depth_multiplier = small(multiplier);
  if (w.causal) x = causal_padding(e, x, w, 2);
  const int version = w.dilations[0] != 1 || w.dilations[1] != 1 ? 2 : 1;
  return e.builder().add({"DEPTHWISE_CONV_2D",
                          {x, filter, bias},
                          {{e.name("depthwise")}},
                          std::make_shared<ops::DepthwiseConv2DAttributes>(a),
                          version})[0];
}

int zero_bias(Emitter& e, int64_t channels) {
  require(channels >= 0 && channels <= (1 << 24), kBad, "the number of channels is {}, expected at most 2^24",
          channels);
  return e.floats(std::vector<float>(static_cast<size_t>(channels), 0.0F));
}

namespace {

/// Biases are not optional for these ops: zeros stand for none.
int bias_or_zeros(Call& call, size_t index, int64_t channels) {
  return call.config.boolean("use_bias", true) ? call.constant(index, "bias", {channels}) : zero_bias(call.e, channels);
}

int64_t channels_of(Emitter& e, int x) {
  const int64_t channels = e.dims(x).back();
  require(channels > 0, ErrorCode::kUnsupported, "the number of channels is not known");
  return channels;
}

void check_rank(Call& call, int rank) {
  require(call.e.rank(call.x()) == rank, ErrorCode::kUnsupported, "the input has rank {}, expected {}",
          call.e.rank(call.x()), rank);
}

int64_t input_channels(Call& call, int x) {
  const int64_t groups = call.config.integer("groups", 1);
  const int64_t channels = channels_of(call.e, x);
  require(groups > 0 && channels % groups == 0, kBad, "{} channels in {} groups", channels, groups);
  return channels / groups;
}

}  // namespace

Window read_window(Call& call, const char* size_key, size_t axes) {
  Window w;
  w.sizes = call.config.integers(size_key, axes, 1);
  const bool pools = std::string_view(size_key) == "pool_size";
  w.strides = call.config.integers("strides", axes, 1);
  if (pools && !call.config.has("strides")) w.strides = w.sizes;
  w.dilations = call.config.integers("dilation_rate", axes, 1);
  for (const auto* list : {&w.sizes, &w.strides, &w.dilations}) {
    for (const int64_t n : *list) {
      require(n > 0 && n <= (1 << 20), kBad, "a window has a size, stride or dilation of {}, expected 1 to {}", n,
              1 << 20);
    }
  }
  const std::string padding = call.config.text("padding", "valid");
  w.causal = padding == "causal" && axes == 1;
  require(padding == "same" || padding == "valid" || w.causal, kBad, "the padding is '{}'", printable(padding));
  w.padding = padding == "same" ? ir::Padding::kSame : ir::Padding::kValid;
  return w;
}

int emit_conv_3d(Emitter& e, int x, int filter, int bias, const Window& w) {
  ops::Conv3DAttributes a;
  a.padding = w.padding;
  a.stride_d = small(w.strides[0]);
  a.stride_h = small(w.strides[1]);
  a.stride_w = small(w.strides[2]);
  a.dilation_d = small(w.dilations[0]);
  a.dilation_h = small(w.dilations[1]);
  a.dilation_w = small(w.dilations[2]);
  return e.builder().node("CONV_3D", {x, filter, bias}, e.name("Conv3D"), a);
}

namespace {

/// One CONV_3D per group: the op has none of its own.
int conv_3d_groups(Call& weights, int x, size_t index, std::string_view name, const Dims& kernel, int bias,
                   const Window& w, int64_t groups) {
  Emitter& e = weights.e;
  if (groups == 1) return emit_conv_3d(e, x, weights.constant(index, name, kernel), bias, w);
  const Weight& whole = weights.weight(index, name, kernel);
  require(whole.dtype == DType::kFloat32, ErrorCode::kUnsupported, "the kernel is {}; save it as float32",
          dtype_name(whole.dtype));
  require(groups <= 4096 && kernel[4] % groups == 0, kBad, "{} filters in {} groups", kernel[4], groups);
  const int64_t filters = kernel[4] / groups;
  const std::vector<int> inputs = e.split(x, 4, static_cast<int>(groups));
  const std::vector<int> biases = e.split(bias, 0, static_cast<int>(groups));
  std::vector<int> results;
  for (size_t g = 0; g < inputs.size(); ++g) {
    const int64_t begin[] = {0, 0, 0, 0, static_cast<int64_t>(g) * filters};
    Dims part = kernel;
    part[4] = filters;
    const ir::Source source =
        ir::sliced_source(whole.source, whole.shape, begin, Shape(std::span<const int64_t>(part)), 4);
    const int filter = e.builder().constant(e.name(name), DType::kFloat32, part, source);
    results.push_back(emit_conv_3d(e, inputs[g], filter, biases[g], w));
  }
  return e.concat(results, 4);
}

Outputs conv(Call& call, size_t axes) {
  check_rank(call, static_cast<int>(axes) + 2);
  const Window w = read_window(call, "kernel_size", axes);
  const int64_t filters = call.config.integer("filters");
  const int y = with_channels_last(call, [&](int x) {
    Dims kernel(w.sizes.begin(), w.sizes.end());
    kernel.insert(kernel.end(), {input_channels(call, x), filters});
    const int bias = call.config.boolean("use_bias", true) ? call.constant(1, "bias", {filters}) : -1;
    return convolve(call, x, 0, "kernel", kernel, bias, w);
  });
  return {activation_of(call, y, "activation")};
}

}  // namespace

int convolve(Call& weights, int x, size_t index, std::string_view name, const Dims& kernel, int bias, const Window& w) {
  Emitter& e = weights.e;
  const int64_t filters = kernel.back();
  if (bias < 0) bias = zero_bias(e, filters);
  const size_t axes = w.sizes.size();
  if (axes == 3) {
    const int64_t channels = kernel[3];
    require(channels > 0 && e.dims(x).back() % channels == 0, kBad,
            "the input has {} channels, expected a multiple of the kernel's {}", e.dims(x).back(), channels);
    return conv_3d_groups(weights, x, index, name, kernel, bias, w, e.dims(x).back() / channels);
  }
  if (axes == 2) {
    return emit_conv_2d(e, x, weights.constant(index, name, kernel, {3, 0, 1, 2}), bias, w);
  }
  const int filter = weights.constant(index, name, kernel, {2, 0, 1}, {filters, 1, w.sizes[0], kernel[1]});
  return e.squeeze(emit_conv_2d(e, e.expand_dims(x, 1), filter, bias, with_height(w)), 1);
}

Outputs conv_1d(Call& call) { return conv(call, 1); }
Outputs conv_2d(Call& call) { return conv(call, 2); }
Outputs conv_3d(Call& call) { return conv(call, 3); }

namespace {

/// A depthwise convolution over `axes` spatial axes, and the pointwise one after it if the layer has one.
Outputs depthwise(Call& call, size_t axes, bool separable) {
  check_rank(call, static_cast<int>(axes) + 2);
  const Window w = read_window(call, "kernel_size", axes);
  const int64_t multiplier = call.config.integer("depth_multiplier", 1);
  require(multiplier > 0 && multiplier <= (1 << 16), kBad, "the depth multiplier is {}, expected 1 to {}", multiplier,
          1 << 16);
  const int y = with_channels_last(call, [&](int x) {
    Emitter& e = call.e;
    const int64_t channels = channels_of(e, x);
    const int64_t wide = channels * multiplier;
    Dims kernel(w.sizes.begin(), w.sizes.end());
    kernel.insert(kernel.end(), {channels, multiplier});
    const Window image = axes == 1 ? with_height(w) : w;
    const int filter = call.constant(0, "depthwise_kernel", kernel, {}, {1, image.sizes[0], image.sizes[1], wide});
    const int input = axes == 1 ? e.expand_dims(x, 1) : x;
    const int bias = separable ? zero_bias(e, wide) : bias_or_zeros(call, 1, wide);
    int result = emit_depthwise(e, input, filter, bias, multiplier, image);
    if (separable) {
      const int64_t filters = call.config.integer("filters");
      Dims point(axes, 1);
      point.insert(point.end(), {wide, filters});
      const std::vector<int> order = axes == 1 ? std::vector<int>{2, 0, 1} : std::vector<int>{3, 0, 1, 2};
      const int pointwise = call.constant(1, "pointwise_kernel", point, order, {filters, 1, 1, wide});
      Window one;
      one.sizes = one.strides = one.dilations = {1, 1};
      result = emit_conv_2d(e, result, pointwise, bias_or_zeros(call, 2, filters), one);
    }
    return axes == 1 ? e.squeeze(result, 1) : result;
  });
  return {activation_of(call, y, "activation")};
}

}  // namespace

Outputs depthwise_conv_1d(Call& call) { return depthwise(call, 1, false); }
Outputs depthwise_conv_2d(Call& call) { return depthwise(call, 2, false); }
Outputs separable_conv_1d(Call& call) { return depthwise(call, 1, true); }
Outputs separable_conv_2d(Call& call) { return depthwise(call, 2, true); }

}  // namespace leadline::keras
