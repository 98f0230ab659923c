// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE.
#include "ops/families.h"

namespace leadline::ops {

void register_transpose(Registry&) {}

}  // namespace leadline::ops
