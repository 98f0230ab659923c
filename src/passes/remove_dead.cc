// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "passes/editor.h"
#include "passes/passes.h"
#include "passes/renumber.h"

namespace leadline::passes {
namespace {

int remove_nodes(Editor& editor) {
  int changes = 0;
  for (int n = editor.node_count() - 1; n >= 0; --n) {
    const ir::Node& node = editor.node(n);
    if (node.outputs.empty()) continue;
    const bool needed = std::any_of(node.outputs.begin(), node.outputs.end(),
                                    [&](int v) { return editor.is_output(v) || !editor.consumers(v).empty(); });
    if (needed || !is_pure(editor.graph(), editor.subgraph(), node)) continue;
    editor.remove(n);
    ++changes;
  }
  return changes;
}

int remove_values(ir::Graph& graph, int index) {
  ir::Subgraph& subgraph = graph.subgraphs[static_cast<size_t>(index)];
  std::vector<bool> used(subgraph.values.size());
  const auto mark = [&](const std::vector<int>& values) {
    for (int v : values) {
      if (v != ir::kAbsent) used[static_cast<size_t>(v)] = true;
    }
  };
  mark(subgraph.inputs);
  mark(subgraph.outputs);
  for (const ir::Node& node : subgraph.nodes) {
    mark(node.inputs);
    mark(node.outputs);
    mark(node.intermediates);
  }
  for (size_t v = 0; v < used.size(); ++v) {
    const Quantization& q = subgraph.values[v].quantization;
    if (used[v] && q.block_size > 0) mark({q.block_scales, q.block_zero_points});
  }
  std::vector<int> number(used.size(), ir::kAbsent);
  int kept = 0;
  for (size_t v = 0; v < used.size(); ++v) {
    if (used[v]) number[v] = kept++;
  }
  const auto changes = static_cast<int>(used.size()) - kept;
  if (changes > 0) renumber_values(graph, index, number);
  return changes;
}

/// Blocks of storage that no constant uses any more.
void release_storage(ir::Graph& graph) {
  std::vector<const std::byte*> used;
  for (const ir::Subgraph& subgraph : graph.subgraphs) {
    for (const ir::Value& value : subgraph.values) used.push_back(value.data.data());
    for (const ir::Node& node : subgraph.nodes) used.push_back(node.custom_options.data());
  }
  for (const ir::Metadata& entry : graph.metadata) used.push_back(entry.data.data());
  std::sort(used.begin(), used.end());
  std::erase_if(graph.storage, [&](const auto& block) {
    const auto it = std::lower_bound(used.begin(), used.end(), block->data());
    return it == used.end() || *it >= block->data() + block->size();
  });
}

}  // namespace

int remove_dead(PassTarget target) {
  int changes = for_each_subgraph(target, [](Editor& editor, int) { return remove_nodes(editor); });
  if (target.for_runs()) return changes;
  ir::Graph& graph = target.change();
  for (int s = 0; s < static_cast<int>(graph.subgraphs.size()); ++s) changes += remove_values(graph, s);
  if (changes > 0) release_storage(graph);
  return changes;
}

}  // namespace leadline::passes
