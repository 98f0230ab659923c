// SPDX-License-Identifier: Apache-2.0
// VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE.
#include "ops/families.h"

namespace leadline::ops {

void register_variables(Registry&) {}

}  // namespace leadline::ops
