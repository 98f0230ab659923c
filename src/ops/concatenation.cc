// SPDX-License-Identifier: Apache-2.0
// CONCATENATION, PACK.
#include "ops/families.h"

namespace leadline::ops {

void register_concatenation(Registry&) {}

}  // namespace leadline::ops
