// SPDX-License-Identifier: Apache-2.0
// Attributes of L2_NORMALIZATION and LOCAL_RESPONSE_NORMALIZATION.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct L2NormalizationAttributes : ir::AttributeSet<L2NormalizationAttributes> {
  ir::Activation activation = ir::Activation::kNone;
  void fields(ir::FieldVisitor& v) { v.choice("fused_activation_function", activation, ir::kActivationCount); }
};

struct LocalResponseAttributes : ir::AttributeSet<LocalResponseAttributes> {
  int32_t radius = 0;
  float bias = 0.0F;
  float alpha = 0.0F;
  float beta = 0.0F;
  void fields(ir::FieldVisitor& v) {
    v.field("radius", radius);
    v.field("bias", bias);
    v.field("alpha", alpha);
    v.field("beta", beta);
  }
};

}  // namespace leadline::ops
