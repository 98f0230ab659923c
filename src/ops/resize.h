// SPDX-License-Identifier: Apache-2.0
// Attributes of RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct ResizeAttributes {
  bool align_corners = false;
  bool half_pixel_centers = false;
};

struct ResizeBilinearAttributes : ir::AttributeSet<ResizeBilinearAttributes>, ResizeAttributes {
  void fields(ir::FieldVisitor& v) {
    v.skip();  // new_height
    v.skip();  // new_width
    v.field("align_corners", align_corners);
    v.field("half_pixel_centers", half_pixel_centers);
  }
};

struct ResizeNearestAttributes : ir::AttributeSet<ResizeNearestAttributes>, ResizeAttributes {
  void fields(ir::FieldVisitor& v) {
    v.field("align_corners", align_corners);
    v.field("half_pixel_centers", half_pixel_centers);
  }
};

}  // namespace leadline::ops
