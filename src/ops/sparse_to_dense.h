// SPDX-License-Identifier: Apache-2.0
// Attributes of SPARSE_TO_DENSE.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct SparseToDenseAttributes : ir::AttributeSet<SparseToDenseAttributes> {
  bool validate_indices = false;  // not read: indices are always checked to be inside
  void fields(ir::FieldVisitor& v) { v.field("validate_indices", validate_indices); }
};

}  // namespace leadline::ops
