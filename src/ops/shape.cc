// SPDX-License-Identifier: Apache-2.0
// SHAPE, RANK, RANGE.
#include "ops/families.h"

namespace leadline::ops {

void register_shape(Registry&) {}

}  // namespace leadline::ops
