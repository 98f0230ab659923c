// SPDX-License-Identifier: Apache-2.0
// BATCH_MATMUL.
#include "ops/families.h"

namespace leadline::ops {

void register_batch_matmul(Registry&) {}

}  // namespace leadline::ops
