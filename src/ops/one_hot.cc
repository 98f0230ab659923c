// SPDX-License-Identifier: Apache-2.0
// ONE_HOT.
#include "ops/families.h"

namespace leadline::ops {

void register_one_hot(Registry&) {}

}  // namespace leadline::ops
