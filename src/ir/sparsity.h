// SPDX-License-Identifier: Apache-2.0
// Rules of sparse constants.
#pragma once

#include <string>

#include "ir/graph.h"

namespace leadline::ir {

/// Throws Error(kInvalidModel) starting with `where` unless the value's sparsity describes exactly the stored elements,
/// each inside the dense shape.
void verify_sparsity(const Value& value, const std::string& where);

}  // namespace leadline::ir
