// SPDX-License-Identifier: Apache-2.0
// Weights with many zeros, stored without them.
#pragma once

#include <memory>
#include <vector>

#include "ir/graph.h"
#include "leadline/budget.h"
#include "leadline/conversion_record.h"

namespace leadline::quantize {

/// Stores weights of dense layers (float32, or int8 with int8 activations) sparsely where that takes fewer bytes: in
/// blocks of one row where they are about as small, since kernels run them faster, else float32 element by element.
/// Those are the forms that LiteRT's FULLY_CONNECTED reads. Reads the weights; `budget` is charged for one at a time.
/// Returns which forms were used.
std::vector<ModelOptimization> sparsify(ir::Graph& graph, const std::shared_ptr<Budget>& budget);

}  // namespace leadline::quantize
