// SPDX-License-Identifier: Apache-2.0
// MEAN, SUM, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD, REDUCE_ANY, REDUCE_ALL.
#include "ops/families.h"

namespace leadline::ops {

void register_reduce(Registry&) {}

}  // namespace leadline::ops
