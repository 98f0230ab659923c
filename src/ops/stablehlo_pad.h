// SPDX-License-Identifier: Apache-2.0
// Attributes of STABLEHLO_PAD.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/attributes.h"

namespace leadline::ops {

struct StablehloPadAttributes : ir::AttributeSet<StablehloPadAttributes> {
  std::vector<int64_t> edge_low;
  std::vector<int64_t> edge_high;
  std::vector<int64_t> interior;
  void fields(ir::FieldVisitor& v) {
    v.field("edge_padding_low", edge_low);
    v.field("edge_padding_high", edge_high);
    v.field("interior_padding", interior);
  }
};

}  // namespace leadline::ops
