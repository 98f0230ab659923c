// SPDX-License-Identifier: Apache-2.0
// Attributes of ARG_MAX and ARG_MIN.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct ArgMinMaxAttributes : ir::AttributeSet<ArgMinMaxAttributes> {
  DType output_type = DType::kFloat32;
  void fields(ir::FieldVisitor& v) { v.choice("output_type", output_type); }
};

}  // namespace leadline::ops
