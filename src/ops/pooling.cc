// SPDX-License-Identifier: Apache-2.0
// AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D.
#include "ops/families.h"

namespace leadline::ops {

void register_pooling(Registry&) {}

}  // namespace leadline::ops
