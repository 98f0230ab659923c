// SPDX-License-Identifier: Apache-2.0
// SPLIT, SPLIT_V, UNPACK.
#include "ops/families.h"

namespace leadline::ops {

void register_split(Registry&) {}

}  // namespace leadline::ops
