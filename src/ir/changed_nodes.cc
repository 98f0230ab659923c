// SPDX-License-Identifier: Apache-2.0
#include "ir/changed_nodes.h"

#include <algorithm>

#include "core/error.h"

namespace leadline::ir {
namespace {

bool equal(const Node& a, const Node& b) {
  return a.op == b.op && a.version == b.version && a.inputs == b.inputs && a.outputs == b.outputs &&
         a.intermediates == b.intermediates && a.attributes == b.attributes &&
         a.custom_options.data() == b.custom_options.data();
}

/// For each absorbed node the one that does its work now: the one that writes its result, or the one that a reader of
/// its result became; -1 when nobody needs the result.
std::vector<int> find_heirs(const Subgraph& before, const Subgraph& after) {
  std::vector<int> maker(after.values.size(), -1);
  std::vector<int> reader(before.values.size(), -1);  // the last in the file
  for (size_t n = 0; n < after.nodes.size(); ++n) {
    for (int v : after.nodes[n].outputs) maker[static_cast<size_t>(v)] = static_cast<int>(n);
    for (int v : before.nodes[n].inputs) {
      if (v != kAbsent) reader[static_cast<size_t>(v)] = static_cast<int>(n);
    }
  }
  std::vector<int> heirs(after.nodes.size(), -1);
  for (size_t n = after.nodes.size(); n-- > 0;) {  // readers come after what they read
    if (!after.nodes[n].op.is_none()) continue;
    for (int v : before.nodes[n].outputs) {
      int heir = maker[static_cast<size_t>(v)];
      const int next = reader[static_cast<size_t>(v)];
      if (heir < 0 && next >= 0)
        heir = after.nodes[static_cast<size_t>(next)].op.is_none() ? heirs[static_cast<size_t>(next)] : next;
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

ChangedNodes changed_nodes(const Graph& original, const Graph& changed) {
  ChangedNodes result;
  result.subgraphs.resize(original.subgraphs.size());
  for (size_t s = 0; s < original.subgraphs.size(); ++s) {
    const Subgraph& before = original.subgraphs[s];
    const Subgraph& after = changed.subgraphs[s];
    require(before.nodes.size() == after.nodes.size() && before.values.size() == after.values.size(),
            ErrorCode::kInternal, "passes changed the numbers of subgraph {}", s);
    ChangedSubgraph& entry = result.subgraphs[s];
    for (size_t n = 0; n < after.nodes.size(); ++n) {
      if (after.nodes[n].op.is_none()) {
        entry.absorbed.push_back(static_cast<int>(n));
      } else if (!equal(before.nodes[n], after.nodes[n])) {
        entry.changed.push_back({static_cast<int>(n), after.nodes[n], {}});
      }
    }
    const std::vector<int> heirs = find_heirs(before, after);
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

}  // namespace leadline::ir
