// SPDX-License-Identifier: Apache-2.0
// Attributes of SVDF.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct SvdfAttributes : ir::AttributeSet<SvdfAttributes> {
  int32_t rank = 0;
  ir::Activation activation = ir::Activation::kNone;
  bool asymmetric_quantize_inputs = false;
  void fields(ir::FieldVisitor& v) {
    v.field("rank", rank);
    v.choice("fused_activation_function", activation, ir::kActivationCount);
    v.field("asymmetric_quantize_inputs", asymmetric_quantize_inputs);
  }
};

}  // namespace leadline::ops
