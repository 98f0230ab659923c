// SPDX-License-Identifier: Apache-2.0
// Attributes of SHAPE.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct ShapeAttributes : ir::AttributeSet<ShapeAttributes> {
  DType out_type = DType::kFloat32;  // the format's default; never a legal value of this op
  void fields(ir::FieldVisitor& v) { v.choice("out_type", out_type); }
};

}  // namespace leadline::ops
