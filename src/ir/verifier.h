// SPDX-License-Identifier: Apache-2.0
// The rules that make a Graph legal, as far as they do not depend on what an op means.
#pragma once

#include "ir/graph.h"

namespace leadline::ir {

/// Throws Error(kInvalidModel), naming the subgraph, node or tensor, unless
///  - there is at least one subgraph, all value and subgraph indices are in range, and no input is listed twice;
///  - every shape's bytes fit into int64, and a dense constant has exactly its tensor's bytes, as data or as a source;
///  - quantization of integer tensors has matching counts, a legal axis, finite positive scales and zero points that
///    the type can hold;
///  - sparsity belongs to a constant and describes exactly the values that are stored, inside the dense shape;
///  - a value has at most one producer, and none if it is a graph input or constant, no node reads what it
///    writes, and every input of a node is available when the node runs;
///  - every subgraph output is available at the end;
///  - subgraph calls have no cycle, and nest and branch within the bounds below;
///  - signatures name inputs and outputs of their subgraph, and no key twice.
void verify(const Graph& graph);

/// Deepest nesting of subgraph calls. Running is recursive, so the stack bounds it; real models nest 3 or 4.
inline constexpr size_t kMaxCallDepth = 64;

/// Every call of a subgraph has a plan and memory of its own, so the number of paths through the calls is bounded too.
inline constexpr size_t kMaxCallInstances = 10'000;

/// Subgraphs that a node calls, in the order of its attributes.
std::vector<int> called_subgraphs(const Node& node);

}  // namespace leadline::ir
