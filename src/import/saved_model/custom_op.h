// SPDX-License-Identifier: Apache-2.0
// Ops without a conversion: custom ops, or TensorFlow's own.
#pragma once

#include "import/saved_model/op_call.h"

namespace leadline::saved_model {

/// The node as a custom op of the same name. Throws Error(kUnsupported) when types or ranks of its results are unknown.
Outputs custom_op(OpCall& call);

/// Whether Leadline has a row for TensorFlow's own op of this name.
bool runs_as_flex(std::string_view op);

/// The node as TensorFlow's own op ("Flex"), as tf.lite writes it where SELECT_TF_OPS allows that: attributes and all.
/// Throws Error(kUnsupported) when types of its results are unknown, or their ranks are and Leadline cannot infer them.
Outputs flex_op(OpCall& call);

}  // namespace leadline::saved_model
