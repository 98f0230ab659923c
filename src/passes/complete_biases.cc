// SPDX-License-Identifier: Apache-2.0
#include "passes/editor.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

constexpr int kFilter = 1;
constexpr int kBias = 2;

bool complete(Editor& e, int n) {
  const ir::Node& node = e.node(n);
  const bool depthwise = node.op == "DEPTHWISE_CONV_2D";
  if (!depthwise && node.op != "CONV_2D") return false;
  if (node.inputs.size() > kBias && node.inputs[kBias] != ir::kAbsent) return false;
  const ir::Value& filter = e.value(node.inputs[kFilter]);
  if (e.value(node.outputs[0]).dtype != DType::kFloat32 || filter.signature || filter.shape.rank() != 4) return false;
  const int64_t channels = filter.shape[depthwise ? 3 : 0];
  const std::vector<float> zeros(static_cast<size_t>(channels));
  e.set_input(n, kBias, e.add_constant(e.value(node.outputs[0]).name + "/bias", DType::kFloat32, {channels}, zeros));
  return true;
}

}  // namespace

int complete_biases(ir::Graph& graph) { return for_each_node(graph, complete); }

}  // namespace leadline::passes
