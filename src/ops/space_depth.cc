// SPDX-License-Identifier: Apache-2.0
// SPACE_TO_DEPTH, DEPTH_TO_SPACE.
#include "ops/families.h"

namespace leadline::ops {

void register_space_depth(Registry&) {}

}  // namespace leadline::ops
