// SPDX-License-Identifier: Apache-2.0
// Attributes of the activation ops.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct LeakyReluAttributes : ir::AttributeSet<LeakyReluAttributes> {
  float alpha = 0.0F;
  void fields(ir::FieldVisitor& v) { v.field("alpha", alpha); }
};

struct GeluAttributes : ir::AttributeSet<GeluAttributes> {
  bool approximate = false;
  void fields(ir::FieldVisitor& v) { v.field("approximate", approximate); }
};

}  // namespace leadline::ops
