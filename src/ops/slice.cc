// SPDX-License-Identifier: Apache-2.0
// SLICE, STRIDED_SLICE.
#include "ops/families.h"

namespace leadline::ops {

void register_slice(Registry&) {}

}  // namespace leadline::ops
