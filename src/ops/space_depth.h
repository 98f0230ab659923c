// SPDX-License-Identifier: Apache-2.0
// Attributes of SPACE_TO_DEPTH and DEPTH_TO_SPACE.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct BlockSizeAttributes : ir::AttributeSet<BlockSizeAttributes> {
  int32_t block_size = 0;
  void fields(ir::FieldVisitor& v) { v.field("block_size", block_size); }
};

}  // namespace leadline::ops
