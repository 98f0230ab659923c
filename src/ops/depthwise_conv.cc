// SPDX-License-Identifier: Apache-2.0
// DEPTHWISE_CONV_2D: input [N,H,W,C], filter [1,KH,KW,C*multiplier], optional bias [C*multiplier].
#include <memory>

#include "kernels/depthwise/depthwise.h"
#include "kernels/quant/dynamic.h"
#include "ops/common.h"
#include "ops/conv.h"
#include "ops/families.h"
#include "ops/half_activations.h"
#include "ops/loops/depthwise.h"
#include "ops/loops/quantize_rows.h"
#include "ops/quantization_rules.h"
#include "ops/wide_contraction.h"

namespace leadline::ops {
namespace {

using kernels::reference::ConvShape;

constexpr ContractionOperands kDepthwiseOperands = {
    .kind = ContractionKind::kDepthwise, .output_axis = 3, .input_axis = 3, .needs_bias = true};

ContractionRule depthwise_rule(const OpContext& c) {
  ContractionRule rule(c, kDepthwiseOperands);
  rule.symmetric_weights = true;
  return rule;
}

ConvShape depthwise_shape(const OpContext& c) {
  const auto& a = c.attributes<DepthwiseConv2DAttributes>();
  const Shape& input = c.input(0).shape;
  const Shape& filter = c.input(1).shape;
  check_conv_ranks(c, input, filter);
  c.require(filter[0] == 1, "the filter has shape {}, expected [1, height, width, channels]", filter.to_string());
  c.require(input[3] >= 1 && filter[3] % input[3] == 0,
            "the filter has {} channels, expected a multiple of the input's {}", filter[3], input[3]);
  const auto [rows, columns] = conv_windows(c, a, input, filter);
  return {.batch = input[0],
          .in_h = input[1],
          .in_w = input[2],
          .in_c = input[3],
          .out_h = rows.output,
          .out_w = columns.output,
          .out_c = filter[3],
          .filter_h = filter[1],
          .filter_w = filter[2],
          .stride_h = a.stride_h,
          .stride_w = a.stride_w,
          .dilation_h = a.dilation_h,
          .dilation_w = a.dilation_w,
          .pad_h = rows.pad_before,
          .pad_w = columns.pad_before,
          .groups = input[3],
          .step_o = 1,
          .step_y = filter[2] * filter[3],
          .step_x = filter[3],
          .step_i = 0};
}

void infer_depthwise_conv(InferContext& c) {
  const ConvShape s = depthwise_shape(c);
  check_contraction(c, depthwise_rule(c));
  activation_range(c, c.attributes<DepthwiseConv2DAttributes>().activation);
  c.set_output_shape(0, {s.batch, s.out_h, s.out_w, s.out_c});
}

kernels::DepthwiseShape fast_shape(const ConvShape& s) {
  return {.batch = s.batch,
          .in_h = s.in_h,
          .in_w = s.in_w,
          .in_c = s.in_c,
          .out_h = s.out_h,
          .out_w = s.out_w,
          .multiplier = s.out_c / s.in_c,
          .filter_h = s.filter_h,
          .filter_w = s.filter_w,
          .stride_h = s.stride_h,
          .stride_w = s.stride_w,
          .dilation_h = s.dilation_h,
          .dilation_w = s.dilation_w,
          .pad_top = s.pad_h,
          .pad_left = s.pad_w};
}

/// float32, 8-bit and dynamic range, which quantizes the activations image by image.
class FastDepthwise final : public Kernel {
 public:
  FastDepthwise(PrepareContext& c, const Contraction& contraction, const ConvShape& shape)
      : f_(contraction), shape_(fast_shape(shape)) {
    BlockLayout packed;
    BlockLayout scratch;
    scales_at_ = packed.take(f_.arithmetic == Arithmetic::kFloat ? 0 : f_.rule.channels * 4);
    if (converts()) filter_at_ = (f_.has_fixed_weights ? packed : scratch).take(f_.widened_bytes());
    if (f_.bias_type == DType::kFloat16) bias_at_ = scratch.take(f_.rule.channels * 4);
    if (f_.arithmetic == Arithmetic::kHybrid) levels_at_ = scratch.take(image_size());
    c.request_packed(packed.size(), f_.has_fixed_weights ? "depthwise" : "depthwise.factors");
    c.request_scratch(scratch.size());
    if (converts() && f_.has_fixed_weights) c.replaces_input(f_.rule.weights);
  }

  void pack(std::byte* packed) override {
    auto* scales = reinterpret_cast<float*>(packed + scales_at_);
    if (f_.arithmetic != Arithmetic::kFloat) f_.fill_scales(scales);
    if (converts() && f_.has_fixed_weights) f_.widen_weights(f_.fixed_weights, packed + filter_at_);
  }

  void run(RunContext& c) override {
    if (c.output(0).elements() == 0) return;
    const auto* scales = reinterpret_cast<const float*>(c.packed() + scales_at_);
    const std::byte* filter = c.input(f_.rule.weights).data;
    if (converts()) {
      if (!f_.has_fixed_weights) f_.widen_weights(filter, c.scratch() + filter_at_);
      filter = (f_.has_fixed_weights ? c.packed() : c.scratch()) + filter_at_;
    }
    if (quantized()) {
      const kernels::DepthwiseI8 conv{.shape = shape_,
                                      .is_unsigned = f_.activation_type == DType::kUInt8,
                                      .input = c.input(0).data,
                                      .input_zero_point = f_.input_zero,
                                      .filter = filter,
                                      .filter_zero_point = f_.weight_zero,
                                      .bias = f_.has_bias ? c.input(2).as<int32_t>() : nullptr,
                                      .output = c.output(0).data,
                                      .scale = scales,
                                      .output_zero_point = f_.output_zero,
                                      .lo = f_.level_lo,
                                      .hi = f_.level_hi};
      return convolve(conv, c.pool());
    }
    const float* bias =
        f_.has_bias ? widen_bias(c.input(2), reinterpret_cast<float*>(c.scratch() + bias_at_)) : nullptr;
    if (f_.arithmetic == Arithmetic::kHybrid) {
      return run_images(c, reinterpret_cast<const int8_t*>(filter), scales, bias);
    }
    const kernels::DepthwiseF32 conv{.shape = shape_,
                                     .input = c.input(0).as<float>(),
                                     .filter = reinterpret_cast<const float*>(filter),
                                     .bias = bias,
                                     .output = c.output(0).mutable_as<float>(),
                                     .lo = f_.lo,
                                     .hi = f_.hi};
    convolve(conv, c.pool());
  }

 private:
  bool quantized() const { return f_.arithmetic == Arithmetic::kQuantized; }
  bool converts() const { return f_.compact_weights(); }
  int64_t image_size() const { return shape_.in_h * shape_.in_w * shape_.in_c; }

  void run_images(RunContext& c, const int8_t* filter, const float* scales, const float* bias) const {
    auto* levels = reinterpret_cast<int8_t*>(c.scratch() + levels_at_);
    kernels::DepthwiseHybrid conv{.shape = shape_,
                                  .input = levels,
                                  .filter = filter,
                                  .scale = scales,
                                  .bias = bias,
                                  .output = c.output(0).mutable_as<float>(),
                                  .lo = f_.lo,
                                  .hi = f_.hi};
    conv.shape.batch = 1;
    const auto* input = c.input(0).as<float>();
    const int64_t output_size = shape_.out_h * shape_.out_w * shape_.out_c();
    for_pieces(shape_.batch, static_cast<double>(image_size() + output_size) + 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        // TFLite's own rule: unlike the other convolutions, LiteRT does not hand this one to XNNPACK.
        quantize_rows(input + i * image_size(), 1, image_size(), levels, {&conv.input_scale, &conv.input_zero_point},
                      c.pool(), kernels::RowRule::kTfliteAsymmetric);
        conv.output = c.output(0).mutable_as<float>() + i * output_size;
        convolve(conv, c.pool());
      }
    });
  }

  Contraction f_;
  kernels::DepthwiseShape shape_;
  int64_t scales_at_ = 0;                // packed
  int64_t filter_at_ = 0;                // packed, or scratch when it is computed while running
  int64_t bias_at_ = 0, levels_at_ = 0;  // scratch
};

/// With a single input channel this is an ordinary convolution, and many outputs per channel are what the gemm is for.
bool one_channel_conv(const Contraction& f, const ConvShape& s) {
  const bool quantized = f.arithmetic == Arithmetic::kQuantized && f.weight_type != DType::kUInt8;
  const bool real = f.arithmetic == Arithmetic::kFloat && f.weight_type == DType::kFloat32;
  return s.in_c == 1 && s.out_c >= 4 && (quantized || real);
}

kernels::ConvShape one_channel_shape(const ConvShape& s) {
  return {.batch = s.batch,
          .in_h = s.in_h,
          .in_w = s.in_w,
          .out_h = s.out_h,
          .out_w = s.out_w,
          .out_c = s.out_c,
          .filter_h = s.filter_h,
          .filter_w = s.filter_w,
          .stride_h = s.stride_h,
          .stride_w = s.stride_w,
          .dilation_h = s.dilation_h,
          .dilation_w = s.dilation_w,
          .pad_top = s.pad_h,
          .pad_left = s.pad_w};
}

std::unique_ptr<Kernel> prepare_depthwise_conv(PrepareContext& c) {
  const ConvLoop loop{depthwise_shape(c)};
  const Contraction contraction =
      make_contraction(c, depthwise_rule(c), c.attributes<DepthwiseConv2DAttributes>().activation);
  if (one_channel_conv(contraction, loop.shape)) {
    return make_conv_kernel(c, contraction, one_channel_shape(loop.shape), true);
  }
  if (contraction.arithmetic != Arithmetic::kWide) return std::make_unique<FastDepthwise>(c, contraction, loop.shape);
  const kernels::DepthwiseShape shape = fast_shape(loop.shape);
  if (shape.taps() <= kernels::kMaxTaps && has_wide_kernel(contraction, shape.taps())) {
    if (shape.multiplier == 1) return make_wide_depthwise(c, contraction, shape);
    const bool bytes = contraction.weight_type == DType::kInt8;
    if (shape.in_c == 1 && bytes) return make_wide_conv(c, contraction, one_channel_shape(loop.shape), true);
  }
  return std::make_unique<ReferenceContraction<ConvLoop>>(c, contraction, loop);
}

}  // namespace

void register_depthwise_conv(Registry& registry) {
  registry.add({.id = op::kDepthwiseConv2D,
                .max_version = 7,
                .min_inputs = 2,
                .max_inputs = 3,
                .required_inputs = 2,
                .options = builtin_options(2),
                .make_attributes = make_attributes<DepthwiseConv2DAttributes>,
                .infer = AlsoHalf<infer_depthwise_conv, prepare_depthwise_conv>::infer,
                .prepare = AlsoHalf<infer_depthwise_conv, prepare_depthwise_conv>::prepare,
                .half_inputs = input_set({1, 2}),
                .contraction = kDepthwiseOperands,
                .window = conv_window<DepthwiseConv2DAttributes>,
                .fuses = kFusesRelus,
                .quantize = weights_rule({.int8 = 3, .int16 = 5, .hybrid = 4, .hybrid_per_channel = 6}),
                .types = "f32 f16 f16-weights i8 u8 i16x8 i4-weights hybrid",
                .fast = "f32 f16-weights i8 u8 i16x8 i4-weights hybrid"});
}

}  // namespace leadline::ops
