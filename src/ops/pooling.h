// SPDX-License-Identifier: Apache-2.0
// Attributes of the pooling family.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct PoolAttributes : ir::AttributeSet<PoolAttributes> {
  ir::Padding padding = ir::Padding::kSame;
  int32_t stride_w = 0;
  int32_t stride_h = 0;
  int32_t filter_width = 0;
  int32_t filter_height = 0;
  ir::Activation activation = ir::Activation::kNone;
  void fields(ir::FieldVisitor& v) {
    v.choice("padding", padding, ir::kPaddingCount);
    v.field("stride_w", stride_w);
    v.field("stride_h", stride_h);
    v.field("filter_width", filter_width);
    v.field("filter_height", filter_height);
    v.choice("fused_activation_function", activation, ir::kActivationCount);
  }
};

}  // namespace leadline::ops
