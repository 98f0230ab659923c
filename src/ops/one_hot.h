// SPDX-License-Identifier: Apache-2.0
// Attributes of ONE_HOT.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct OneHotAttributes : ir::AttributeSet<OneHotAttributes> {
  int32_t axis = 0;  // -1: the last
  void fields(ir::FieldVisitor& v) { v.field("axis", axis); }
};

}  // namespace leadline::ops
