// SPDX-License-Identifier: Apache-2.0
// Attributes of BATCH_MATMUL.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct BatchMatmulAttributes : ir::AttributeSet<BatchMatmulAttributes> {
  bool adj_x = false;
  bool adj_y = false;
  bool asymmetric_quantize_inputs = false;  // as in FULLY_CONNECTED: kept, not read
  void fields(ir::FieldVisitor& v) {
    v.field("adj_x", adj_x);
    v.field("adj_y", adj_y);
    v.field("asymmetric_quantize_inputs", asymmetric_quantize_inputs);
  }
};

}  // namespace leadline::ops
