// SPDX-License-Identifier: Apache-2.0
// TILE, BROADCAST_TO, FILL.
#include "ops/families.h"

namespace leadline::ops {

void register_broadcast(Registry&) {}

}  // namespace leadline::ops
