// SPDX-License-Identifier: Apache-2.0
// Operations of keras.ops in functional models; operations.cc has their table.
#pragma once

#include "import/keras/layer_functions.h"

namespace leadline::keras {

/// Operand `index` of an operation: a tensor, or a constant of the type of the other operand.
int operand(Call& call, size_t index, std::string_view name, int like);

}  // namespace leadline::keras
