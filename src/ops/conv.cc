// SPDX-License-Identifier: Apache-2.0
// CONV_2D.
#include "ops/families.h"

namespace leadline::ops {

void register_conv(Registry&) {}

}  // namespace leadline::ops
