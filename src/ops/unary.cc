// SPDX-License-Identifier: Apache-2.0
// ABS, NEG, EXP, LOG, SQRT, RSQRT, SQUARE, SIN, COS, FLOOR, CEIL, ROUND.
#include "ops/families.h"

namespace leadline::ops {

void register_unary(Registry&) {}

}  // namespace leadline::ops
