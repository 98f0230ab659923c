// SPDX-License-Identifier: Apache-2.0
// Attributes of CAST.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

/// What the converter wrote down; the types that count are those of the tensors.
struct CastAttributes : ir::AttributeSet<CastAttributes> {
  DType in_data_type = DType::kFloat32;
  DType out_data_type = DType::kFloat32;
  void fields(ir::FieldVisitor& v) {
    v.choice("in_data_type", in_data_type);
    v.choice("out_data_type", out_data_type);
  }
};

}  // namespace leadline::ops
