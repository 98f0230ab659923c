// SPDX-License-Identifier: Apache-2.0
// Types of results that files may declare as they like, because LiteRT overwrites them when it prepares the node.
#pragma once

#include "ir/op_id.h"

namespace leadline::ops {

/// The input whose type LiteRT gives to the results of builtin op `id`, whatever the file declares; -1: the declared
/// type counts, and the op checks it.
int result_type_source(const ir::OpId& id);

}  // namespace leadline::ops
