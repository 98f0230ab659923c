// SPDX-License-Identifier: Apache-2.0
// Attributes of FAKE_QUANT, and the levels that they mean.
#pragma once

#include <optional>

#include "ir/attributes.h"

namespace leadline::ops {

struct FakeQuantAttributes : ir::AttributeSet<FakeQuantAttributes> {
  float min = 0;
  float max = 0;
  int32_t num_bits = 0;
  bool narrow_range = false;  // level 0 is not used
  void fields(ir::FieldVisitor& v) {
    v.field("min", min);
    v.field("max", max);
    v.field("num_bits", num_bits);
    v.field("narrow_range", narrow_range);
  }
};

/// The range moved so that zero is one of its levels.
struct FakeQuantLevels {
  float scale = 0;
  float lo = 0;
  float hi = 0;
};

/// Nothing when the range cannot be divided into levels. `num_bits` has to be one that the op takes.
std::optional<FakeQuantLevels> levels_of(const FakeQuantAttributes& attributes);

}  // namespace leadline::ops
