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

using Seen = std::unordered_map<std::string, int>;

bool merge(Editor& e, int n, Seen& seen) {
  const ir::Node& node = e.node(n);
  bool eligible = node.code != ir::kCustomOp && node.outputs.size() == 1 && node.intermediates.empty() &&
                  ir::called_subgraphs(node).empty() && is_pure(e.graph(), e.subgraph(), node);
  for (int v : node.outputs) eligible = eligible && !e.is_output(v);
  if (!eligible) return false;
  const auto [it, is_new] = seen.try_emplace(key_of(e, node), n);
  if (is_new) return false;
  const int first = e.node(it->second).outputs[0];
  const int second = node.outputs[0];
  if (!(e.value(first).quantization == e.value(second).quantization) || !e.replace(second, first)) return false;
  e.remove(n);
  return true;
}

}  // namespace

int merge_nodes(ir::Graph& graph) {
  return for_each_subgraph(graph, [](Editor& editor, int) {
    Seen seen;
    return for_each_node(editor, [&](Editor& e, int n) { return merge(e, n, seen); });
  });
}

}  // namespace leadline::passes
