// SPDX-License-Identifier: Apache-2.0
// Attributes of LSH_PROJECTION.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

enum class LshProjectionType : int8_t { kUnknown = 0, kSparse = 1, kDense = 2 };

struct LshProjectionAttributes : ir::AttributeSet<LshProjectionAttributes> {
  LshProjectionType type = LshProjectionType::kUnknown;
  void fields(ir::FieldVisitor& v) { v.choice("type", type, 3); }
};

}  // namespace leadline::ops
