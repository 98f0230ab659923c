// SPDX-License-Identifier: Apache-2.0
// Attributes of SOFTMAX.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct SoftmaxAttributes : ir::AttributeSet<SoftmaxAttributes> {
  float beta = 0.0F;
  void fields(ir::FieldVisitor& v) { v.field("beta", beta); }
};

}  // namespace leadline::ops
