// SPDX-License-Identifier: Apache-2.0
// FULLY_CONNECTED.
#include "ops/families.h"

namespace leadline::ops {

void register_fully_connected(Registry&) {}

}  // namespace leadline::ops
