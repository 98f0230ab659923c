// SPDX-License-Identifier: Apache-2.0
// Attributes of REVERSE_SEQUENCE.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct ReverseSequenceAttributes : ir::AttributeSet<ReverseSequenceAttributes> {
  int32_t seq_dim = 0;    // the axis that is reversed
  int32_t batch_dim = 0;  // the axis that has a length for each of its elements
  void fields(ir::FieldVisitor& v) {
    v.field("seq_dim", seq_dim);
    v.field("batch_dim", batch_dim);
  }
};

}  // namespace leadline::ops
