// SPDX-License-Identifier: Apache-2.0
// Attributes of UNIQUE.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct UniqueAttributes : ir::AttributeSet<UniqueAttributes> {
  DType idx_out_type = DType::kInt32;
  void fields(ir::FieldVisitor& v) { v.choice("idx_out_type", idx_out_type); }
};

}  // namespace leadline::ops
