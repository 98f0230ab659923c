// SPDX-License-Identifier: Apache-2.0
#include "ops/arithmetic.h"
#include "passes/editor.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

/// The float node that makes `v` for one reader alone, if it is `op`; -1 otherwise.
int sole_maker(Editor& e, int v, const ir::OpId& op) {
  const int maker = e.producer(v);
  if (maker < 0 || e.node(maker).op != op || !e.used_once(v)) return -1;
  return e.value(v).variable ? -1 : maker;
}

bool merge_product(Editor& e, int n) {
  const ir::Node& node = e.node(n);
  if (node.op != op::kMul || node.inputs.size() != 2) return false;
  if (activation_of(*node.attributes) != ir::Activation::kNone) return false;
  for (const int gate : {0, 1}) {
    const int x = node.inputs[static_cast<size_t>(1 - gate)];
    const int logistic = sole_maker(e, node.inputs[static_cast<size_t>(gate)], op::kLogistic);
    if (logistic < 0 || x == ir::kAbsent || e.node(logistic).inputs[0] != x) continue;
    if (e.value(x).dtype != DType::kFloat32 || e.value(x).variable || e.value(x).constant) continue;
    if (e.value(node.outputs[0]).dtype != DType::kFloat32 || e.value(node.outputs[0]).variable) continue;
    if (e.value(node.inputs[static_cast<size_t>(gate)]).dtype != DType::kFloat32) continue;
    e.remove(logistic);
    e.become(n, op::kSwish, {x});
    return true;
  }
  return false;
}

}  // namespace

int merge_swish(PassTarget target) { return for_each_node(target, merge_product); }

}  // namespace leadline::passes
