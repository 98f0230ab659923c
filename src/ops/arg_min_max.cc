// SPDX-License-Identifier: Apache-2.0
// ARG_MAX, ARG_MIN.
#include "ops/families.h"

namespace leadline::ops {

void register_arg_min_max(Registry&) {}

}  // namespace leadline::ops
