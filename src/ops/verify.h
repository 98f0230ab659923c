// SPDX-License-Identifier: Apache-2.0
// The rules of a legal Graph that need to know the ops.
#pragma once

#include "ir/graph.h"

namespace leadline::ops {

/// Throws Error(kInvalidModel), naming the node, unless every node of a known op has a legal number of inputs and
/// outputs and no required input is absent.
void verify_nodes(const ir::Graph& graph);
/// The same for one node.
void verify_node(const ir::Subgraph& subgraph, int index);

}  // namespace leadline::ops
