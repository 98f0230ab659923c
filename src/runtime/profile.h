// SPDX-License-Identifier: Apache-2.0
// Time per node, summed over runs.
#pragma once

#include <vector>

#include "ir/changed_nodes.h"
#include "ir/graph.h"
#include "leadline/observer.h"

namespace leadline::runtime {

class Profile {
 public:
  bool enabled() const { return !entries_.empty(); }
  /// Starts from zero. Nodes have the names of what runs: `changed` is what passes made of some, null: the graph as it
  /// is.
  void enable(const ir::Graph& graph, const ir::ChangedNodes* changed);
  void disable() { entries_.clear(); }
  /// The graph runs with other changes from now on; times stay.
  void rename(const ir::Graph& graph, const ir::ChangedNodes* changed);
  void add(int subgraph, int node, double ms);
  /// Of the nodes that ran.
  std::vector<NodeProfile> entries() const;

 private:
  std::vector<std::vector<NodeProfile>> entries_;  // [subgraph][node]; empty while profiling is off
};

}  // namespace leadline::runtime
