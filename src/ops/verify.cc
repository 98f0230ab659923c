// SPDX-License-Identifier: Apache-2.0
#include "ops/verify.h"

#include "core/error.h"
#include "ops/registry.h"

namespace leadline::ops {
namespace {

void check_count(const ir::Subgraph& subgraph, int node, size_t count, int least, int most, const char* what) {
  const bool ok = count >= static_cast<size_t>(least) && (most < 0 || count <= static_cast<size_t>(most));
  if (ok) return;
  const std::string expected = most < 0        ? fmt::format("at least {}", least)
                               : least == most ? fmt::format("{}", least)
                                               : fmt::format("{} to {}", least, most);
  fail(ErrorCode::kInvalidModel, "{}: {} {}, expected {}", ir::describe_node(subgraph, node), count, what, expected);
}

}  // namespace

void verify_node(const ir::Subgraph& subgraph, int index) {
  const ir::Node& node = subgraph.nodes[static_cast<size_t>(index)];
  const OpDef* op = registry().find(node.op);
  if (op == nullptr) return;
  check_count(subgraph, index, node.inputs.size(), op->min_inputs, op->max_inputs, "inputs");
  check_count(subgraph, index, node.outputs.size(), op->min_outputs, op->max_outputs, "outputs");
  for (int i = 0; i < op->required_inputs && i < static_cast<int>(node.inputs.size()); ++i) {
    require(node.inputs[static_cast<size_t>(i)] != ir::kAbsent, ErrorCode::kInvalidModel,
            "{}: input {} is marked absent, but the op needs it", ir::describe_node(subgraph, index), i);
  }
}

void verify_nodes(const ir::Graph& graph) {
  for (const ir::Subgraph& subgraph : graph.subgraphs) {
    for (size_t n = 0; n < subgraph.nodes.size(); ++n) verify_node(subgraph, static_cast<int>(n));
  }
}

}  // namespace leadline::ops
