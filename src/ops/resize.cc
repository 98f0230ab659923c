// SPDX-License-Identifier: Apache-2.0
// RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR.
#include "ops/families.h"

namespace leadline::ops {

void register_resize(Registry&) {}

}  // namespace leadline::ops
