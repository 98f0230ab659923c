// SPDX-License-Identifier: Apache-2.0
// Attributes of BUCKETIZE.
#pragma once

#include <vector>

#include "ir/attributes.h"

namespace leadline::ops {

struct BucketizeAttributes : ir::AttributeSet<BucketizeAttributes> {
  std::vector<float> boundaries;  // ascending
  void fields(ir::FieldVisitor& v) { v.field("boundaries", boundaries); }
};

}  // namespace leadline::ops
