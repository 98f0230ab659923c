// SPDX-License-Identifier: Apache-2.0
// Attributes of ops that no file has: passes make them of several nodes for a run.
#pragma once

#include <array>
#include <cstdint>

#include "ir/attributes.h"

namespace leadline::ops {

/// LOOKUP: an 8-bit tensor through a table.
struct LookupAttributes : ir::AttributeSet<LookupAttributes> {
  std::array<uint8_t, 256> table{};  // by the bits of the input
  int32_t least_rank = 0;            // the result has at least this rank, as after sums with constants of shape [1, 1]
  void fields(ir::FieldVisitor& v) { v.field("least_rank", least_rank); }
  int64_t extra_bytes() const override { return sizeof(table); }
};

/// LAYER_NORM: x, gain or nothing, shift or nothing; along the last axis.
struct LayerNormAttributes : ir::AttributeSet<LayerNormAttributes> {
  float epsilon = 0.0F;
  int32_t axis = -1;  // as the nodes say; negative: from the end
  void fields(ir::FieldVisitor& v) {
    v.field("epsilon", epsilon);
    v.field("axis", axis);
  }
};

}  // namespace leadline::ops
