// SPDX-License-Identifier: Apache-2.0
// Attributes of GATHER.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct GatherAttributes : ir::AttributeSet<GatherAttributes> {
  int32_t axis = 0;
  int32_t batch_dims = 0;
  void fields(ir::FieldVisitor& v) {
    v.field("axis", axis);
    v.field("batch_dims", batch_dims);
  }
};

}  // namespace leadline::ops
