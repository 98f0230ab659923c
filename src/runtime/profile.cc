// SPDX-License-Identifier: Apache-2.0
#include "runtime/profile.h"

#include <algorithm>
#include <iterator>

namespace leadline::runtime {

void Profile::enable(const ir::Graph& graph, const ir::ChangedNodes* changed) {
  entries_.clear();
  for (const ir::Subgraph& subgraph : graph.subgraphs) entries_.emplace_back(subgraph.nodes.size());
  rename(graph, changed);
}

void Profile::rename(const ir::Graph& graph, const ir::ChangedNodes* changed) {
  for (size_t s = 0; s < entries_.size(); ++s) {
    const ir::Subgraph& source = graph.subgraphs[s];
    for (size_t n = 0; n < entries_[s].size(); ++n) {
      const auto* instead = changed != nullptr ? changed->subgraphs[s].find(static_cast<int>(n)) : nullptr;
      const ir::Node& node = instead != nullptr ? instead->node : source.nodes[n];
      NodeProfile& entry = entries_[s][n];
      entry.subgraph = static_cast<int>(s);
      entry.node = static_cast<int>(n);
      entry.op = node.op.name();
      if (!node.outputs.empty()) entry.name = source.value(node.outputs[0]).name;
    }
  }
}

void Profile::add(int subgraph, int node, double ms) {
  NodeProfile& entry = entries_[static_cast<size_t>(subgraph)][static_cast<size_t>(node)];
  entry.fastest_ms = entry.runs == 0 ? ms : std::min(entry.fastest_ms, ms);
  entry.total_ms += ms;
  ++entry.runs;
}

std::vector<NodeProfile> Profile::entries() const {
  std::vector<NodeProfile> result;
  for (const auto& nodes : entries_) {
    std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(result), [](const auto& e) { return e.runs > 0; });
  }
  return result;
}

}  // namespace leadline::runtime
