// SPDX-License-Identifier: Apache-2.0
// What a run does instead of some nodes of a graph. Values, the order of nodes and all numbers are the graph's.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace leadline::ir {

struct ChangedNode {
  int number = 0;  // of the node it stands for
  Node node;
  std::vector<int> merged;  // numbers of the nodes whose work it does besides its own
};

/// What became of one subgraph's nodes; by number.
struct ChangedSubgraph {
  std::vector<ChangedNode> changed;
  std::vector<int> absorbed;  // nodes that do nothing: others do their work

  /// Null: the node is the graph's own, or absorbed.
  const ChangedNode* find(int node) const;
  bool absorbs(int node) const;
};

struct ChangedNodes {
  std::vector<ChangedSubgraph> subgraphs;

  bool empty() const;
  /// Heap bytes, those of attributes included.
  int64_t bytes() const;
};

/// The nodes of `changed`, a copy of `original` with fixed numbers that passes worked on, that are others now.
ChangedNodes changed_nodes(const Graph& original, const Graph& changed);

}  // namespace leadline::ir
