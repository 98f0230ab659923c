// SPDX-License-Identifier: Apache-2.0
// POW, FLOOR_DIV, FLOOR_MOD.
#include "ops/families.h"

namespace leadline::ops {

void register_integer_math(Registry&) {}

}  // namespace leadline::ops
