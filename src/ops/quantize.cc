// SPDX-License-Identifier: Apache-2.0
// QUANTIZE, DEQUANTIZE.
#include "ops/families.h"

namespace leadline::ops {

void register_quantize(Registry&) {}

}  // namespace leadline::ops
