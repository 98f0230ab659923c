// SPDX-License-Identifier: Apache-2.0
// TFLite_Detection_PostProcess.
#include "ops/families.h"

namespace leadline::ops {

void register_detection_postprocess(Registry&) {}

}  // namespace leadline::ops
