// SPDX-License-Identifier: Apache-2.0
// SOFTMAX, LOG_SOFTMAX.
#include "ops/families.h"

namespace leadline::ops {

void register_softmax(Registry&) {}

}  // namespace leadline::ops
