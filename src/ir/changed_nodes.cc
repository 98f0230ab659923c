// SPDX-License-Identifier: Apache-2.0
#include "ir/changed_nodes.h"

#include <algorithm>

namespace leadline::ir {
namespace {

bool equal(const Node& a, const Node& b) {
  return a.op == b.op && a.version == b.version && a.inputs == b.inputs && a.outputs == b.outputs &&
         a.intermediates == b.intermediates && a.attributes == b.attributes &&
         a.custom_options.data() == b.custom_options.data();
}

/// For each absorbed node the one that does its work now: the one that writes its result, or the one that a reader of
/// its result became; -1 when the result is not needed.
std::vector<int> find_heirs(const Subgraph& subgraph, const NodeOverlay& overlay) {
  const size_t count = subgraph.nodes.size();
  const auto after = [&](size_t n) -> const Node& {
    const auto found = overlay.find(static_cast<int>(n));
    return found == overlay.end() ? subgraph.nodes[n] : found->second;
  };
  std::vector<int> maker(subgraph.values.size(), -1);
  std::vector<int> reader(subgraph.values.size(), -1);  // the last in the file
  for (size_t n = 0; n < count; ++n) {
    for (int v : after(n).outputs) maker[static_cast<size_t>(v)] = static_cast<int>(n);
    for (int v : subgraph.nodes[n].inputs) {
      if (v != kAbsent) reader[static_cast<size_t>(v)] = static_cast<int>(n);
    }
  }
  std::vector<int> heirs(count, -1);
  for (size_t n = count; n-- > 0;) {  // readers come after what they read
    if (!after(n).op.is_none()) continue;
    for (int v : subgraph.nodes[n].outputs) {
      int heir = maker[static_cast<size_t>(v)];
      const int next = reader[static_cast<size_t>(v)];
      if (heir < 0 && next >= 0) {
        heir = after(static_cast<size_t>(next)).op.is_none() ? heirs[static_cast<size_t>(next)] : next;
      }
      heirs[n] = std::max(heirs[n], heir);
    }
  }
  return heirs;
}

}  // namespace

const ChangedNode* ChangedSubgraph::find(int node) const {
  const auto it = std::lower_bound(changed.begin(), changed.end(), node,
                                   [](const ChangedNode& entry, int number) { return entry.number < number; });
  return it == changed.end() || it->number != node ? nullptr : &*it;
}

bool ChangedSubgraph::absorbs(int node) const { return std::binary_search(absorbed.begin(), absorbed.end(), node); }

bool ChangedNodes::empty() const {
  return std::all_of(subgraphs.begin(), subgraphs.end(),
                     [](const ChangedSubgraph& s) { return s.changed.empty() && s.absorbed.empty(); });
}

int64_t ChangedNodes::bytes() const {
  constexpr int64_t kAttributes = 48;  // a shared attribute struct of a few fields
  const auto heap = [](const auto& v) { return static_cast<int64_t>(v.capacity() * sizeof(v[0])); };
  int64_t bytes = heap(subgraphs);
  for (const ChangedSubgraph& s : subgraphs) {
    bytes += heap(s.changed) + heap(s.absorbed);
    for (const ChangedNode& c : s.changed) {
      bytes += heap(c.merged) + heap(c.node.inputs) + heap(c.node.outputs) + heap(c.node.intermediates) + kAttributes;
      if (c.node.op.is_fused()) bytes += c.node.attributes->extra_bytes();
    }
  }
  return bytes;
}

ChangedNodes changed_nodes(const Graph& graph, const std::vector<NodeOverlay>& overlays) {
  ChangedNodes result;
  result.subgraphs.resize(graph.subgraphs.size());
  for (size_t s = 0; s < graph.subgraphs.size(); ++s) {
    const Subgraph& subgraph = graph.subgraphs[s];
    ChangedSubgraph& entry = result.subgraphs[s];
    for (const auto& [n, node] : overlays[s]) {
      if (node.op.is_none()) {
        entry.absorbed.push_back(n);
      } else if (!equal(subgraph.nodes[static_cast<size_t>(n)], node)) {
        entry.changed.push_back({n, node, {}});
      }
    }
    if (entry.absorbed.empty() && entry.changed.empty()) continue;
    const std::vector<int> heirs = find_heirs(subgraph, overlays[s]);
    for (int n : entry.absorbed) {
      const int by = heirs[static_cast<size_t>(n)];
      if (const ChangedNode* c = entry.find(by))
        entry.changed[static_cast<size_t>(c - entry.changed.data())].merged.push_back(n);
    }
    entry.changed.shrink_to_fit();
    entry.absorbed.shrink_to_fit();
    for (ChangedNode& c : entry.changed) c.merged.shrink_to_fit();
  }
  return result;
}

Graph with_overlays(const Graph& graph, const std::vector<NodeOverlay>& overlays) {
  Graph result = graph;
  for (size_t s = 0; s < overlays.size(); ++s) {
    for (const auto& [n, node] : overlays[s]) result.subgraphs[s].nodes[static_cast<size_t>(n)] = node;
  }
  return result;
}

}  // namespace leadline::ir
