// SPDX-License-Identifier: Apache-2.0
// Attributes of the reductions.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct ReduceAttributes : ir::AttributeSet<ReduceAttributes> {
  bool keep_dims = false;
  void fields(ir::FieldVisitor& v) { v.field("keep_dims", keep_dims); }
};

}  // namespace leadline::ops
