// SPDX-License-Identifier: Apache-2.0
// Attributes of MIRROR_PAD.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

enum class MirrorMode : int8_t {
  kReflect = 0,    // the edge is not repeated
  kSymmetric = 1,  // the edge is repeated
};

struct MirrorPadAttributes : ir::AttributeSet<MirrorPadAttributes> {
  MirrorMode mode = MirrorMode::kReflect;
  void fields(ir::FieldVisitor& v) { v.choice("mode", mode, 2); }
};

}  // namespace leadline::ops
