// SPDX-License-Identifier: Apache-2.0
// Convolutions, pooling, normalization, activations, images.
#include "core/join.h"
#include "import/functions.h"
#include "import/saved_model/op_functions.h"
#include "ops/activation.h"
#include "ops/conv.h"
#include "ops/conv_3d.h"
#include "ops/normalization.h"
#include "ops/one_hot.h"
#include "ops/pooling.h"
#include "ops/softmax.h"

namespace leadline::saved_model {
namespace {

/// One number for each axis of a window; batch and channels must have 1.
std::vector<int32_t> window(const OpCall& call, const char* name, size_t axes) {
  const std::vector<int64_t> all = call.attr_ints(name);
  if (all.empty()) return std::vector<int32_t>(axes, 1);
  require(all.size() == axes + 2, kBad, "{} has {} numbers, expected {}", name, all.size(), axes + 2);
  call.refuse_if(all.front() != 1 || all.back() != 1, fmt::format("has {} over batch or channels", name));
  std::vector<int32_t> result;
  for (size_t i = 1; i <= axes; ++i) {
    require(all[i] > 0 && all[i] <= (1 << 20), kBad, "{} has a number of {}", name, all[i]);
    result.push_back(small(all[i]));
  }
  return result;
}

/// The padding; explicit sizes become a PAD in front of `x`.
ir::Padding padding(OpCall& call, int& x) {
  const std::string text = call.attr_text("padding", "VALID");
  if (text == "SAME") return ir::Padding::kSame;
  if (text == "EXPLICIT") {
    const std::vector<int64_t> sizes = call.attr_ints("explicit_paddings");
    std::vector<std::pair<int64_t, int64_t>> pads;
    for (size_t i = 0; i + 1 < sizes.size(); i += 2) pads.emplace_back(sizes[i], sizes[i + 1]);
    require(static_cast<int>(pads.size()) == call.e.rank(x), kBad, "there are {} explicit paddings, expected {}",
            sizes.size(), 2 * call.e.rank(x));
    call.refuse_if(std::string_view(call.row.target) == "MAX_POOL_2D", "pads explicitly; use padding SAME or VALID");
    x = call.e.pad(x, pads);
    return ir::Padding::kValid;
  }
  require(text == "VALID", kBad, "the padding is '{}'", printable(text));
  return ir::Padding::kValid;
}

int zeros(OpCall& call, int64_t count) {
  require(count >= 0 && count <= (1 << 24), ErrorCode::kUnsupported,
          "the number of channels is {}, expected at most 2^24", count);
  return call.e.floats(std::vector<float>(static_cast<size_t>(count), 0.0F));
}

void check_rank(const OpCall& call, int value, int rank, const char* what) {
  require(call.e.rank(value) == rank, kBad, "{} has rank {}, expected {}", what, call.e.rank(value), rank);
}

}  // namespace

Outputs conv_2d(OpCall& call) {
  call.require_channels_last();
  int x = call.in(0);
  check_rank(call, x, 4, "the input");
  check_rank(call, call.in(1), 4, "the filter");
  const auto strides = window(call, "strides", 2);
  const auto dilations = window(call, "dilations", 2);
  ops::Conv2DAttributes a;
  a.padding = padding(call, x);
  a.stride_h = strides[0];
  a.stride_w = strides[1];
  a.dilation_h = dilations[0];
  a.dilation_w = dilations[1];
  const int bias = zeros(call, call.e.dims(call.in(1))[3]);
  return {call.builder().node("CONV_2D", {x, call.e.transpose(call.in(1), {3, 0, 1, 2}), bias}, call.name(), a)};
}

Outputs conv_2d_transpose(OpCall& call) {
  call.require_channels_last();
  check_rank(call, call.in(1), 4, "the filter");
  check_rank(call, call.in(2), 4, "the input");
  const auto dilations = window(call, "dilations", 2);
  call.refuse_if(dilations[0] != 1 || dilations[1] != 1, "is dilated, which TRANSPOSE_CONV is not");
  const std::string pad = call.attr_text("padding", "VALID");
  call.refuse_if(pad != "SAME" && pad != "VALID", "pads explicitly; use padding SAME or VALID");
  const auto strides = window(call, "strides", 2);
  ops::TransposeConvAttributes a;
  a.padding = pad == "SAME" ? ir::Padding::kSame : ir::Padding::kValid;
  a.stride_h = strides[0];
  a.stride_w = strides[1];
  const int filter = call.e.transpose(call.in(1), {2, 0, 1, 3});
  const Dims dims = {call.e.dims(call.in(2))[0], -1, -1, call.e.dims(call.in(1))[2]};
  return {call.sized("TRANSPOSE_CONV", {call.in32(0), filter, call.in(2)}, DType::kFloat32, dims,
                     std::make_shared<ops::TransposeConvAttributes>(a))};
}

Outputs conv_3d(OpCall& call) {
  call.require_channels_last();
  int x = call.in(0);
  check_rank(call, x, 5, "the input");
  check_rank(call, call.in(1), 5, "the filter");
  const auto strides = window(call, "strides", 3);
  const auto dilations = window(call, "dilations", 3);
  ops::Conv3DAttributes a;
  a.padding = padding(call, x);
  a.stride_d = strides[0];
  a.stride_h = strides[1];
  a.stride_w = strides[2];
  a.dilation_d = dilations[0];
  a.dilation_h = dilations[1];
  a.dilation_w = dilations[2];
  const int bias = zeros(call, call.e.dims(call.in(1))[4]);
  return {call.builder().node("CONV_3D", {x, call.in(1), bias}, call.name(), a)};
}

Outputs depthwise_conv(OpCall& call) {
  call.require_channels_last();
  int x = call.in(0);
  check_rank(call, x, 4, "the input");
  check_rank(call, call.in(1), 4, "the filter");
  const Dims filter = call.e.dims(call.in(1));
  require(filter[2] > 0 && filter[3] > 0 && filter[2] <= (1 << 20) && filter[3] <= (1 << 20), kBad,
          "the filter has shape [{}]", join(filter, ", "));
  const auto strides = window(call, "strides", 2);
  const auto dilations = window(call, "dilations", 2);
  auto a = std::make_shared<ops::DepthwiseConv2DAttributes>();
  a->padding = padding(call, x);
  a->stride_h = strides[0];
  a->stride_w = strides[1];
  a->dilation_h = dilations[0];
  a->dilation_w = dilations[1];
  a->depth_multiplier = small(filter[3]);
  const int64_t wide = filter[2] * filter[3];
  const int weights = call.e.reshape(call.in(1), {1, filter[0], filter[1], wide});
  ops::NodeSpec spec;
  spec.op = "DEPTHWISE_CONV_2D";
  spec.inputs = {x, weights, zeros(call, wide)};
  spec.outputs = {{call.name(), call.e.dtype(x)}};
  spec.version = dilations[0] != 1 || dilations[1] != 1 ? 2 : 1;
  spec.attributes = std::move(a);
  return call.builder().add(std::move(spec));
}

Outputs bias_add(OpCall& call) {
  call.require_channels_last();
  return {call.builder().node("ADD", {call.in(0), call.in(1)}, call.name())};
}

namespace {

/// With the statistics of x itself, as layers write that normalize single examples: x is [1, groups, size, 1], and the
/// groups are the channels.
Outputs group_norm(OpCall& call, float epsilon) {
  Emitter& e = call.e;
  const int x = call.in(0);
  check_rank(call, x, 4, "the input");
  const bool channels_first = call.attr_text("data_format", "NHWC") == "NCHW";
  call.refuse_if(e.dims(x)[0] != 1, "is in training mode; save the model for inference");
  const std::vector<int32_t> axes = channels_first ? std::vector<int32_t>{0, 2, 3} : std::vector<int32_t>{0, 1, 2};
  const auto along_channels = [&](int v) { return channels_first ? e.reshape(v, {-1, 1, 1}) : v; };
  const int centred = e.sub(x, e.reduce("MEAN", x, axes, true));
  const int variance = e.reduce("MEAN", e.mul(centred, centred), axes, true);
  const int factor = e.mul(e.unary("RSQRT", e.add(variance, static_cast<double>(epsilon))), along_channels(call.in(1)));
  return {call.builder().node("ADD", {e.mul(centred, factor), along_channels(call.in(2))}, call.name())};
}

}  // namespace

/// (x - mean) * scale / sqrt(variance + epsilon) + offset, in the form that convolutions can take up.
Outputs batch_norm(OpCall& call) {
  Emitter& e = call.e;
  const float epsilon = call.attr_float("epsilon", 1e-4F);
  if (call.attr_bool("is_training", true)) return group_norm(call, epsilon);
  call.require_channels_last();
  const int factor = e.mul(call.in(1), e.unary("RSQRT", e.add(call.in(4), static_cast<double>(epsilon))));
  const int offset = e.sub(call.in(2), e.mul(call.in(3), factor));
  return {call.builder().node("ADD", {e.mul(call.in(0), factor), offset}, call.name())};
}

Outputs pool(OpCall& call) {
  call.require_channels_last();
  int x = call.in(0);
  check_rank(call, x, 4, "the input");
  const auto sizes = window(call, "ksize", 2);
  const auto strides = window(call, "strides", 2);
  ops::PoolAttributes a;
  a.padding = padding(call, x);
  a.filter_height = sizes[0];
  a.filter_width = sizes[1];
  a.stride_h = strides[0];
  a.stride_w = strides[1];
  return {call.builder().node(call.row.target, {x}, call.name(), a)};
}

Outputs leaky_relu(OpCall& call) {
  ops::LeakyReluAttributes a;
  a.alpha = call.attr_float("alpha", 0.2F);
  return {call.builder().node("LEAKY_RELU", {call.in()}, call.name(), a)};
}

Outputs selu(OpCall& call) { return {importing::selu(call.e, call.in())}; }
Outputs softplus(OpCall& call) { return {importing::softplus(call.e, call.in())}; }
Outputs softsign(OpCall& call) { return {call.e.div(call.in(), call.e.add(call.e.unary("ABS", call.in()), 1.0))}; }

Outputs softmax(OpCall& call) {
  ops::SoftmaxAttributes a;
  a.beta = 1.0F;
  return {call.builder().node("SOFTMAX", {call.in()}, call.name(), a)};
}

Outputs l2_loss(OpCall& call) {
  Emitter& e = call.e;
  std::vector<int32_t> axes;
  for (int i = 0; i < e.rank(call.in()); ++i) axes.push_back(i);
  return {e.mul(e.reduce("SUM", e.mul(call.in(), call.in()), axes, false), 0.5)};
}

Outputs conv_3d_transpose(OpCall& call) {
  call.require_channels_last();
  check_rank(call, call.in(1), 5, "the filter");
  check_rank(call, call.in(2), 5, "the input");
  const auto dilations = window(call, "dilations", 3);
  call.refuse_if(dilations != std::vector<int32_t>(3, 1), "is dilated, which CONV_3D_TRANSPOSE is not");
  const std::string pad = call.attr_text("padding", "VALID");
  call.refuse_if(pad != "SAME" && pad != "VALID", "pads explicitly; use padding SAME or VALID");
  const auto strides = window(call, "strides", 3);
  auto a = std::make_shared<ops::Conv3DAttributes>();
  a->padding = pad == "SAME" ? ir::Padding::kSame : ir::Padding::kValid;
  a->stride_d = strides[0];
  a->stride_h = strides[1];
  a->stride_w = strides[2];
  const int64_t channels = call.e.dims(call.in(1))[3];
  return {call.sized("CONV_3D_TRANSPOSE", {call.in32(0), call.in(1), call.in(2)}, DType::kFloat32,
                     {call.e.dims(call.in(2))[0], -1, -1, -1, channels}, a)};
}

Outputs local_response(OpCall& call) {
  ops::LocalResponseAttributes a;
  a.radius = small(call.attr_int("depth_radius", 5));
  a.bias = call.attr_float("bias", 1.0F);
  a.alpha = call.attr_float("alpha", 1.0F);
  a.beta = call.attr_float("beta", 0.5F);
  return {call.builder().node("LOCAL_RESPONSE_NORMALIZATION", {call.in()}, call.name(), a)};
}

/// The loss, and its slope over the logits. Sparse labels are numbers of classes.
Outputs cross_entropy(OpCall& call) {
  Emitter& e = call.e;
  const int logits = call.in(0);
  check_rank(call, logits, 2, "the logits");
  int labels = call.in(1);
  if (call.node.op == "SparseSoftmaxCrossEntropyWithLogits") {
    const int64_t classes = e.dims(logits)[1];
    call.refuse_if(classes < 0, "has an unknown number of classes");
    ops::OneHotAttributes a;
    a.axis = -1;
    labels = call.builder().node("ONE_HOT", {labels, e.integer(small(classes)), e.scalar(1.0F), e.scalar(0.0F)},
                                 e.name("OneHot"), a, DType::kFloat32);
  }
  const int logs = e.unary("LOG_SOFTMAX", logits);
  const int loss = e.unary("NEG", e.reduce("SUM", e.mul(labels, logs), {1}, false));
  return {loss, e.sub(e.softmax(logits), labels)};
}

}  // namespace leadline::saved_model
