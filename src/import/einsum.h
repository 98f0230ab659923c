// SPDX-License-Identifier: Apache-2.0
// Sums of products over named axes ("abc,cd->abd") as transpositions, matrix products and reshapes.
#pragma once

#include <string>
#include <vector>

#include "import/emitter.h"

namespace leadline::importing {

/// `equation` may have "..." and may leave out the result; operands are multiplied from left to right.
/// Throws Error(kInvalidModel) when the equation does not fit its operands, and Error(kUnsupported) for an axis twice
/// in one term, an axis of size 1 that would be broadcast, and joined axes of unknown size.
int einsum(Emitter& e, const std::string& equation, const std::vector<int>& operands);

}  // namespace leadline::importing
