// SPDX-License-Identifier: Apache-2.0
// PAD, PADV2, MIRROR_PAD.
#include "ops/families.h"

namespace leadline::ops {

void register_pad(Registry&) {}

}  // namespace leadline::ops
