// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unordered_map>

#include "ir/verifier.h"
#include "passes/editor.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

/// Equal for nodes that compute the same from the same.
std::string key_of(Editor& e, const ir::Node& node) {
  std::string key = fmt::format("{} v{} ({}) {}", node.op, node.version, fmt::join(node.inputs, ","),
                                ir::attributes_text(*node.attributes));
  for (int v : node.outputs) key += fmt::format(" {}", dtype_name(e.value(v).dtype));
  return key;
}

int merge(ir::Graph& graph, int index) {
  Editor e(graph, index);
  std::unordered_map<std::string, int> seen;
  int changes = 0;
  for (int n = 0; n < e.node_count(); ++n) {
    const ir::Node& node = e.node(n);
    bool eligible = node.code != ir::kCustomOp && node.outputs.size() == 1 && node.intermediates.empty() &&
                    ir::called_subgraphs(node).empty() && is_pure(graph, e.subgraph(), node);
    for (int v : node.outputs) eligible = eligible && !e.is_output(v);
    if (!eligible) continue;
    const auto [it, is_new] = seen.try_emplace(key_of(e, node), n);
    if (is_new) continue;
    const int first = e.node(it->second).outputs[0];
    const int second = node.outputs[0];
    if (!(e.value(first).quantization == e.value(second).quantization) || !e.replace(second, first)) continue;
    e.remove(n);
    ++changes;
  }
  return changes;
}

}  // namespace

int merge_nodes(ir::Graph& graph) {
  int changes = 0;
  for (int s = 0; s < static_cast<int>(graph.subgraphs.size()); ++s) changes += merge(graph, s);
  return changes;
}

}  // namespace leadline::passes
