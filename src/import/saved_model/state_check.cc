// SPDX-License-Identifier: Apache-2.0
// Errs on the safe side: a write counts wherever it stands in a function, also after all reads.
#include "import/saved_model/state_check.h"

#include "core/error.h"

namespace leadline::saved_model {

bool changes_state(std::string_view op) {
  return op.starts_with("Assign") || op.starts_with("ResourceScatter") || op.starts_with("ResourceApply") ||
         op.starts_with("ResourceSparseApply") || op == "ResourceStridedSliceAssign" || op == "ScatterUpdate" ||
         op == "ScatterAdd" || op == "ScatterSub" || op == "CountUpTo" || op == "ResourceCountUpTo";
}

void StateCheck::run(const std::vector<Ref>& outputs) {
  const Body& main = resolver_.program().main();
  std::unordered_set<int> seen;
  std::vector<int> nodes;
  const auto push = [&](const Operand& operand) {
    const bool fed = !operand.control && resolver_.is_fed({Resolver::kMain, operand.node, operand.output});
    if (!fed && seen.insert(operand.node).second) nodes.push_back(operand.node);
  };
  for (const Ref& output : outputs) push({output.node, output.output, false});
  while (!nodes.empty()) {
    const int index = nodes.back();
    nodes.pop_back();
    const NodeDef& node = (*main.nodes)[static_cast<size_t>(index)];
    for (const std::string_view input : node.inputs) push(resolver_.program().operand(main, input, node.name));
    look_at(Resolver::kMain, index);
  }
  while (!todo_.empty()) {
    const int frame = todo_.back();
    todo_.pop_back();
    const auto count = static_cast<int>(resolver_.frame(frame).body->nodes->size());
    for (int i = 0; i < count; ++i) look_at(frame, i);
  }
}

void StateCheck::look_at(int frame, int index) {
  const NodeDef& node = resolver_.node({frame, index, 0});
  if (changes_state(node.op)) {
    const std::vector<Ref> inputs = resolver_.inputs(frame, index);
    if (!inputs.empty() && resolver_.is_variable(inputs[0]))
      changed_.emplace(resolver_.variable_name(inputs[0]), &node);
  } else if (node.op != "PartitionedCall" && resolver_.is_call(node)) {
    add_frame(resolver_.callee(frame, index));
  } else if (Resolver::is_control(node) && !node.op.starts_with("Stateless")) {
    for (const int inside : resolver_.control(frame, index).frames) add_frame(inside);
  }
}

void StateCheck::add_frame(int frame) {
  if (seen_.insert(frame).second) todo_.push_back(frame);
}

}  // namespace leadline::saved_model
