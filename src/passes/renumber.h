// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "ir/graph.h"

namespace leadline::passes {

/// Value v of a subgraph becomes value number[v]; with ir::kAbsent nothing uses it, and it is removed. Those that stay
/// are numbered without gaps.
void renumber_values(ir::Graph& graph, int subgraph, std::span<const int> number);

}  // namespace leadline::passes
