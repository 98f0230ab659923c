// SPDX-License-Identifier: Apache-2.0
// Ops without a conversion.
#pragma once

#include "import/saved_model/op_call.h"

namespace leadline::saved_model {

/// The node as a custom op of the same name. Throws Error(kUnsupported) when types or ranks of its results are unknown.
Outputs custom_op(OpCall& call);

}  // namespace leadline::saved_model
