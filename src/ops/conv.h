// SPDX-License-Identifier: Apache-2.0
// Attributes of the convolutions, and their sizes.
#pragma once

#include "kernels/conv/conv2d.h"
#include "kernels/reference/conv.h"
#include "ops/common.h"
#include "ops/contraction.h"

namespace leadline::ops {

/// Rows and columns of zeros around an image that was to be padded first. No file has them: passes for runs do.
struct Border {
  int32_t top = 0, bottom = 0, left = 0, right = 0;
  bool any() const { return top != 0 || bottom != 0 || left != 0 || right != 0; }
};

/// How filters move over an image: what CONV_2D and DEPTHWISE_CONV_2D have in common.
struct ConvWindow {
  ir::Padding padding = ir::Padding::kSame;
  int32_t stride_w = 0;
  int32_t stride_h = 0;
  int32_t dilation_w = 1;
  int32_t dilation_h = 1;
  Border border;  // with VALID padding alone

  void border_fields(ir::FieldVisitor& v) {
    v.run_only("border_top", border.top);
    v.run_only("border_bottom", border.bottom);
    v.run_only("border_left", border.left);
    v.run_only("border_right", border.right);
  }
};

/// OpDef::window of an op with attributes A.
template <typename A>
ConvWindow* conv_window(ir::Attributes& attributes) {
  return &ir::attributes_as<A>(attributes);
}

/// The windows of a convolution with filters of this shape over an image with its border. Throws when a window could
/// lie in the border alone.
struct ConvWindows {
  Window rows, columns;
};
inline ConvWindows conv_windows(const OpContext& c, const ConvWindow& a, const Shape& image, const Shape& filter) {
  const Border& b = a.border;
  const int64_t height = int64_t{b.top} + b.bottom;
  const int64_t width = int64_t{b.left} + b.right;
  ConvWindows w{window(c, a.padding, image[1] + height, filter[1], a.stride_h, a.dilation_h),
                window(c, a.padding, image[2] + width, filter[2], a.stride_w, a.dilation_w)};
  c.require(height <= (filter[1] - 1) * a.dilation_h && width <= (filter[2] - 1) * a.dilation_w,
            "a border of {} by {} is wider than the filter", height, width);
  w.rows.pad_before += b.top;
  w.columns.pad_before += b.left;
  return w;
}

struct Conv2DAttributes : ir::AttributeSet<Conv2DAttributes>, ConvWindow {
  ir::Activation activation = ir::Activation::kNone;
  DType quantized_bias_type = DType::kFloat32;  // float32: not set
  void fields(ir::FieldVisitor& v) {
    v.choice("padding", padding, ir::kPaddingCount);
    v.field("stride_w", stride_w);
    v.field("stride_h", stride_h);
    v.choice("fused_activation_function", activation, ir::kActivationCount);
    v.field("dilation_w_factor", dilation_w);
    v.field("dilation_h_factor", dilation_h);
    v.choice("quantized_bias_type", quantized_bias_type);
    border_fields(v);
  }
};

struct DepthwiseConv2DAttributes : ir::AttributeSet<DepthwiseConv2DAttributes>, ConvWindow {
  int32_t depth_multiplier = 0;  // the shapes say the same; not read
  ir::Activation activation = ir::Activation::kNone;
  void fields(ir::FieldVisitor& v) {
    v.choice("padding", padding, ir::kPaddingCount);
    v.field("stride_w", stride_w);
    v.field("stride_h", stride_h);
    v.field("depth_multiplier", depth_multiplier);
    v.choice("fused_activation_function", activation, ir::kActivationCount);
    v.field("dilation_w_factor", dilation_w);
    v.field("dilation_h_factor", dilation_h);
    border_fields(v);
  }
};

struct TransposeConvAttributes : ir::AttributeSet<TransposeConvAttributes> {
  ir::Padding padding = ir::Padding::kSame;
  int32_t stride_w = 0;
  int32_t stride_h = 0;
  ir::Activation activation = ir::Activation::kNone;
  DType quantized_bias_type = DType::kFloat32;  // float32: not set
  void fields(ir::FieldVisitor& v) {
    v.choice("padding", padding, ir::kPaddingCount);
    v.field("stride_w", stride_w);
    v.field("stride_h", stride_h);
    v.choice("fused_activation_function", activation, ir::kActivationCount);
    v.choice("quantized_bias_type", quantized_bias_type);
  }
};

/// Throws unless both operands have rank 4 and sizes that window arithmetic can hold, and the filter is not empty.
void check_conv_ranks(const OpContext& c, const Shape& input, const Shape& filter);

/// A convolution on the packed gemm; the contraction is packable(). With `channels_last` the filter is
/// [filter_h, filter_w, out_c] over one input channel, as DEPTHWISE_CONV_2D has it, in float32, int8 or fewer bits.
std::unique_ptr<Kernel> make_conv_kernel(PrepareContext& c, const Contraction& contraction,
                                         const kernels::ConvShape& shape, bool channels_last = false);

/// The sizes of a transposed convolution with an output of this shape: a convolution from `output` to `input`, seen
/// backwards. Throws when they do not go together; `input` and `filter` passed check_conv_ranks().
kernels::reference::ConvShape transpose_conv_shape(const OpContext& c, const TransposeConvAttributes& a,
                                                   const Shape& input, const Shape& filter, const Shape& output);

/// A transposed convolution of these sizes.
std::unique_ptr<Kernel> make_transpose_conv_kernel(PrepareContext& c, const Contraction& contraction,
                                                   const kernels::reference::ConvShape& shape);

/// A convolution's loop, for ReferenceContraction.
struct ConvLoop {
  kernels::reference::ConvShape shape;
  int64_t images() const { return shape.batch; }
  int64_t image_size() const { return shape.in_h * shape.in_w * shape.in_c; }
  template <typename In, typename Zero, typename Weight, typename Finish, typename Out>
  void operator()(ThreadPool& pool, const In* input, Zero input_zero, const Weight* filter, int32_t filter_zero,
                  const Finish& finish, Out* output) const {
    run_reference(kernels::reference::Conv<In, Weight, Zero, Finish, Out>{{shape, input, input_zero, filter,
                                                                           filter_zero, finish, output}},
                  pool);
  }
};

}  // namespace leadline::ops
