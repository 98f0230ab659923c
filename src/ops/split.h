// SPDX-License-Identifier: Apache-2.0
// Attributes of SPLIT, SPLIT_V and UNPACK.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct SplitAttributes : ir::AttributeSet<SplitAttributes> {
  int32_t num_splits = 0;
  void fields(ir::FieldVisitor& v) { v.field("num_splits", num_splits); }
};

struct UnpackAttributes : ir::AttributeSet<UnpackAttributes> {
  int32_t num = 0;
  int32_t axis = 0;
  void fields(ir::FieldVisitor& v) {
    v.field("num", num);
    v.field("axis", axis);
  }
};

}  // namespace leadline::ops
