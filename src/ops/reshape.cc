// SPDX-License-Identifier: Apache-2.0
// RESHAPE, SQUEEZE, EXPAND_DIMS.
#include "ops/families.h"

namespace leadline::ops {

void register_reshape(Registry&) {}

}  // namespace leadline::ops
