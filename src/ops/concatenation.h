// SPDX-License-Identifier: Apache-2.0
// Attributes of CONCATENATION and PACK.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct ConcatenationAttributes : ir::AttributeSet<ConcatenationAttributes> {
  int32_t axis = 0;
  ir::Activation activation = ir::Activation::kNone;
  void fields(ir::FieldVisitor& v) {
    v.field("axis", axis);
    v.choice("fused_activation_function", activation, ir::kActivationCount);
  }
};

struct PackAttributes : ir::AttributeSet<PackAttributes> {
  int32_t values_count = 0;
  int32_t axis = 0;
  void fields(ir::FieldVisitor& v) {
    v.field("values_count", values_count);
    v.field("axis", axis);
  }
};

}  // namespace leadline::ops
