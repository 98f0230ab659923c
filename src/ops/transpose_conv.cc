// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE_CONV.
#include "ops/families.h"

namespace leadline::ops {

void register_transpose_conv(Registry&) {}

}  // namespace leadline::ops
