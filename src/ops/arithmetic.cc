// SPDX-License-Identifier: Apache-2.0
// ADD, SUB, MUL, DIV, SQUARED_DIFFERENCE.
#include "ops/families.h"

namespace leadline::ops {

void register_arithmetic(Registry&) {}

}  // namespace leadline::ops
