// SPDX-License-Identifier: Apache-2.0
// CALL_ONCE, IF, WHILE.
#include "ops/families.h"

namespace leadline::ops {

void register_control_flow(Registry&) {}

}  // namespace leadline::ops
