// SPDX-License-Identifier: Apache-2.0
// EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL.
#include "ops/families.h"

namespace leadline::ops {

void register_comparison(Registry&) {}

}  // namespace leadline::ops
