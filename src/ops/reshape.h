// SPDX-License-Identifier: Apache-2.0
// Attributes of RESHAPE and SQUEEZE.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct ReshapeAttributes : ir::AttributeSet<ReshapeAttributes> {
  std::vector<int32_t> new_shape;
  void fields(ir::FieldVisitor& v) { v.field("new_shape", new_shape); }
};

struct SqueezeAttributes : ir::AttributeSet<SqueezeAttributes> {
  std::vector<int32_t> squeeze_dims;
  void fields(ir::FieldVisitor& v) { v.field("squeeze_dims", squeeze_dims); }
};

}  // namespace leadline::ops
