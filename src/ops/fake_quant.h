// SPDX-License-Identifier: Apache-2.0
// Attributes of FAKE_QUANT.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct FakeQuantAttributes : ir::AttributeSet<FakeQuantAttributes> {
  float min = 0;
  float max = 0;
  int32_t num_bits = 0;
  bool narrow_range = false;  // level 0 is not used
  void fields(ir::FieldVisitor& v) {
    v.field("min", min);
    v.field("max", max);
    v.field("num_bits", num_bits);
    v.field("narrow_range", narrow_range);
  }
};

}  // namespace leadline::ops
