// SPDX-License-Identifier: Apache-2.0
// DEPTHWISE_CONV_2D.
#include "ops/families.h"

namespace leadline::ops {

void register_depthwise_conv(Registry&) {}

}  // namespace leadline::ops
