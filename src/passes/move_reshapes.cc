// SPDX-License-Identifier: Apache-2.0
// A contraction over sequences is a convolution between two reshapes. What follows it per channel can be folded into it
// only when the second reshape is out of the way.
#include <algorithm>

#include "ops/registry.h"
#include "passes/editor.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

/// The operand that node `n` changes element by element, the others being constants that vary along the last axis only
/// and have no higher rank than `rank`; -1 otherwise.
int changed_operand(Editor& e, const ir::Node& node, int rank) {
  const ops::OpDef* op = ops::row_of(node);
  if (op != nullptr && op->activation) return 0;
  if (!ir::is_one_of(node.op, {op::kAdd, op::kSub, op::kMul, op::kDiv})) return -1;
  for (int i : {0, 1}) {
    const int constant = node.inputs[static_cast<size_t>(1 - i)];
    if (!e.is_constant(constant) || e.is_constant(node.inputs[static_cast<size_t>(i)])) continue;
    const Shape& shape = e.value(constant).shape;
    const bool along_last =
        std::all_of(shape.begin(), shape.end() - (shape.rank() > 0 ? 1 : 0), [](int64_t size) { return size == 1; });
    if (along_last && shape.rank() <= rank) return i;
  }
  return -1;
}

/// y = f(reshape(x)) becomes y = reshape(f(x)): the two nodes change places.
bool move(Editor& e, int n) {
  const ir::Node& node = e.node(n);
  if (node.outputs.size() != 1 || e.value(node.outputs[0]).dtype != DType::kFloat32) return false;
  for (int i = 0; i < static_cast<int>(node.inputs.size()) && i < 2; ++i) {
    const int middle = node.inputs[static_cast<size_t>(i)];
    const int before = e.producer(middle);
    if (before < 0 || !is_reshape(e.node(before)) || !e.used_once(middle)) continue;
    const ir::Node& reshape = e.node(before);
    const int x = reshape.inputs[0];
    const auto from = dims_of(e.value(x));
    const auto to = dims_of(e.value(middle));
    if (from.empty() || to.empty() || from.back() < 1 || from.back() != to.back()) continue;
    if (to != dims_of(e.value(node.outputs[0])) || changed_operand(e, node, static_cast<int>(from.size())) != i)
      continue;
    const int maker = e.producer(x);
    const ops::OpDef* contraction = maker < 0 ? nullptr : ops::row_of(e.node(maker));
    if (contraction == nullptr || !contraction->contraction.has_weights() || !e.used_once(x)) continue;
    if (activation_of(*e.node(maker).attributes) != ir::Activation::kNone) continue;
    if (reshape.inputs.size() > 1 && !e.is_constant(reshape.inputs[1])) continue;
    std::vector<int> first = node.inputs;
    first[static_cast<size_t>(i)] = x;
    std::vector<int> second = reshape.inputs;
    second[0] = middle;
    e.swap_ops(before, n);
    e.set_inputs(before, std::move(first));
    e.set_inputs(n, std::move(second));
    e.change_value(middle).shape = e.value(x).shape;
    e.change_value(middle).signature = e.value(x).signature;
    return true;
  }
  return false;
}

}  // namespace

int move_reshapes(PassTarget target) { return for_each_node(target, move); }

}  // namespace leadline::passes
