// SPDX-License-Identifier: Apache-2.0
// Rules of sparse constants.
#pragma once

#include <cstddef>
#include <string>

#include "ir/graph.h"

namespace leadline::ir {

/// Throws Error(kInvalidModel) starting with `where` unless the value's sparsity describes exactly the stored elements,
/// each inside the dense shape.
void verify_sparsity(const Value& value, const std::string& where);

/// Writes the dense form of a verified sparse constant to `target`, which has storage_bytes() of its type and shape.
/// What is not stored is 0.
void make_dense(const Value& value, std::byte* target);

}  // namespace leadline::ir
