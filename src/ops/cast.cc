// SPDX-License-Identifier: Apache-2.0
// CAST.
#include "ops/families.h"

namespace leadline::ops {

void register_cast(Registry&) {}

}  // namespace leadline::ops
