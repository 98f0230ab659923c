// SPDX-License-Identifier: Apache-2.0
// Sums of products over named axes ("abc,cd->abd") as transpositions, one BATCH_MATMUL and reshapes.
#pragma once

#include <string>
#include <vector>

#include "import/keras/layer.h"

namespace leadline::keras {

/// `equation` may have "..." and may leave out the result. Throws for axes that appear twice in one term.
int einsum(Call& call, const std::string& equation, const std::vector<int>& operands);

}  // namespace leadline::keras
