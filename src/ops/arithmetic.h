// SPDX-License-Identifier: Apache-2.0
// Attributes of the arithmetic ops.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

/// ADD and SUB.
struct AddAttributes : ir::AttributeSet<AddAttributes> {
  ir::Activation activation = ir::Activation::kNone;
  bool pot_scale_int16 = true;  // int16 scales are powers of two
  void fields(ir::FieldVisitor& v) {
    v.choice("fused_activation_function", activation, ir::kActivationCount);
    v.field("pot_scale_int16", pot_scale_int16);
  }
};

/// MUL and DIV.
struct MulAttributes : ir::AttributeSet<MulAttributes> {
  ir::Activation activation = ir::Activation::kNone;
  void fields(ir::FieldVisitor& v) { v.choice("fused_activation_function", activation, ir::kActivationCount); }
};

}  // namespace leadline::ops
