// SPDX-License-Identifier: Apache-2.0
// LOGICAL_AND, LOGICAL_OR, LOGICAL_NOT.
#include "ops/families.h"

namespace leadline::ops {

void register_logical(Registry&) {}

}  // namespace leadline::ops
