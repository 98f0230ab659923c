// SPDX-License-Identifier: Apache-2.0
// What a run does instead of some nodes of a graph. Values, the order of nodes and all numbers are the graph's.
#pragma once

#include <map>
#include <vector>

#include "ir/graph.h"

namespace leadline::ir {

struct ChangedNode {
  int number = 0;  // of the node it stands for
  Node node;
  std::vector<int> merged;  // indices of the nodes whose work it does besides its own
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

/// Nodes of one subgraph that passes changed, by number; of no op: others do their work.
using NodeOverlay = std::map<int, Node>;

/// What stands for the nodes of a graph, given an overlay for each subgraph.
ChangedNodes changed_nodes(const Graph& graph, const std::vector<NodeOverlay>& overlays);
/// The graph with the nodes of the overlays in place, to be verified.
Graph with_overlays(const Graph& graph, const std::vector<NodeOverlay>& overlays);

}  // namespace leadline::ir
