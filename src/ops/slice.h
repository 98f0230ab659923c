// SPDX-License-Identifier: Apache-2.0
// Attributes of STRIDED_SLICE.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

/// Bit i of a mask belongs to entry i of begin, end and strides.
struct StridedSliceAttributes : ir::AttributeSet<StridedSliceAttributes> {
  int32_t begin_mask = 0;        // begin is the first element
  int32_t end_mask = 0;          // end is past the last element
  int32_t ellipsis_mask = 0;     // stands for all axes no other entry names
  int32_t new_axis_mask = 0;     // adds an axis of size 1
  int32_t shrink_axis_mask = 0;  // takes one element and drops the axis
  bool offset = false;           // end counts from begin
  void fields(ir::FieldVisitor& v) {
    v.field("begin_mask", begin_mask);
    v.field("end_mask", end_mask);
    v.field("ellipsis_mask", ellipsis_mask);
    v.field("new_axis_mask", new_axis_mask);
    v.field("shrink_axis_mask", shrink_axis_mask);
    v.field("offset", offset);
  }
};

}  // namespace leadline::ops
