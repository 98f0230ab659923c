// SPDX-License-Identifier: Apache-2.0
#include "ops/registry.h"
#include "passes/editor.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

bool complete(Editor& e, int n) {
  const ir::Node& node = e.node(n);
  const ops::OpDef* op = ops::row_of(node);
  if (op == nullptr || !op->contraction.needs_bias) return false;
  const ops::ContractionOperands& c = op->contraction;
  if (static_cast<int>(node.inputs.size()) > c.bias && node.inputs[static_cast<size_t>(c.bias)] != ir::kAbsent) {
    return false;
  }
  const ir::Value& weights = e.value(node.inputs[static_cast<size_t>(c.weights)]);
  const ir::Value& result = e.value(node.outputs[0]);
  if (result.dtype != DType::kFloat32 || weights.signature || weights.shape.rank() != c.rank) return false;
  const int64_t channels = weights.shape[c.output_axis];
  const std::vector<float> zeros(static_cast<size_t>(channels));
  const std::string name = result.name + "/bias";
  e.set_input(n, c.bias, e.add_constant(name, DType::kFloat32, {channels}, zeros));
  return true;
}

}  // namespace

int complete_biases(PassTarget target) { return for_each_node(target, complete); }

}  // namespace leadline::passes
