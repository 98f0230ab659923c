// SPDX-License-Identifier: Apache-2.0
// Large constants of one value as FILL nodes: smaller files for a little time at each run. Not among the passes that
// are made by themselves.
#pragma once

#include <memory>

#include "ir/graph.h"
#include "leadline/budget.h"

namespace leadline::passes {

/// Constants that only ops without weights read, and of more than 64 KiB. Reads them; `budget` is
/// charged for one at a time. Returns how many were replaced.
int unfold_constants(ir::Graph& graph, const std::shared_ptr<Budget>& budget);

}  // namespace leadline::passes
