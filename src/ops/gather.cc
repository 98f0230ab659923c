// SPDX-License-Identifier: Apache-2.0
// GATHER, GATHER_ND.
#include "ops/families.h"

namespace leadline::ops {

void register_gather(Registry&) {}

}  // namespace leadline::ops
