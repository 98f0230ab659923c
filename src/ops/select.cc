// SPDX-License-Identifier: Apache-2.0
// SELECT, SELECT_V2, WHERE.
#include "ops/families.h"

namespace leadline::ops {

void register_select(Registry&) {}

}  // namespace leadline::ops
