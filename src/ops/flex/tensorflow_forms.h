// SPDX-License-Identifier: Apache-2.0
// Builtin nodes of types that only Leadline computes, as TensorFlow's own ("Flex") ops: what tf.lite writes for them
// where SELECT_TF_OPS allows it. Runtimes with TensorFlow's ops run such files, Leadline runs both forms.
#pragma once

#include "ir/graph.h"

namespace leadline::ops {

/// Returns how many nodes were changed.
int use_tensorflow_forms(ir::Graph& graph);

}  // namespace leadline::ops
