// SPDX-License-Identifier: Apache-2.0
// Attributes of CONV_3D and CONV_3D_TRANSPOSE, and the sizes both check.
#pragma once

#include "kernels/conv/conv3d.h"
#include "ops/op.h"

namespace leadline::ops {

struct Conv3DAttributes : ir::AttributeSet<Conv3DAttributes> {
  ir::Padding padding = ir::Padding::kSame;
  int32_t stride_d = 0;
  int32_t stride_w = 0;
  int32_t stride_h = 0;
  ir::Activation activation = ir::Activation::kNone;
  int32_t dilation_d = 1;
  int32_t dilation_w = 1;
  int32_t dilation_h = 1;
  void fields(ir::FieldVisitor& v) {
    v.choice("padding", padding, ir::kPaddingCount);
    v.field("stride_d", stride_d);
    v.field("stride_w", stride_w);
    v.field("stride_h", stride_h);
    v.choice("fused_activation_function", activation, ir::kActivationCount);
    v.field("dilation_d_factor", dilation_d);
    v.field("dilation_w_factor", dilation_w);
    v.field("dilation_h_factor", dilation_h);
  }
};

/// Types, ranks, sizes, activation and bias of either op; `channels` counts the bias. Throws what is wrong.
void check_conv_3d(const OpContext& c, int input, int filter, int bias, int64_t channels);

/// Shape of a convolution from spatial axes 1..3 of `from`; the outputs are computed.
kernels::Conv3DShape conv_3d_shape(const OpContext& c, const Shape& from, const Shape& filter);

}  // namespace leadline::ops
