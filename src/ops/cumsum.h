// SPDX-License-Identifier: Apache-2.0
// Attributes of CUMSUM.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct CumsumAttributes : ir::AttributeSet<CumsumAttributes> {
  bool exclusive = false;  // element i is not part of sum i
  bool reverse = false;    // from the end
  void fields(ir::FieldVisitor& v) {
    v.field("exclusive", exclusive);
    v.field("reverse", reverse);
  }
};

}  // namespace leadline::ops
