// SPDX-License-Identifier: Apache-2.0
// Depth first, inputs before their users. Only calls and control flow recurse, no deeper than calls may be nested.
#include "import/saved_model/effects.h"

#include <algorithm>
#include <array>

#include "import/saved_model/op_call.h"

namespace leadline::saved_model {
namespace {

/// Ops whose first input is the handle of a variable.
bool takes_variable(std::string_view op) {
  static constexpr std::array<std::string_view, 4> kReads = {"ReadVariableOp", "ResourceGather", "ResourceGatherNd",
                                                             "VariableShape"};
  return is_assignment(op) || std::find(kReads.begin(), kReads.end(), op) != kReads.end();
}

}  // namespace

bool is_assignment(std::string_view op) {
  const OpRow* const row = find_op(op);
  return row != nullptr && row->variable == VariableUse::kWrite;
}

std::vector<Ref> Effects::of_outputs(const std::vector<Ref>& outputs) {
  if (!resolver_.keeps_any()) return {};
  std::vector<int> starts;
  for (const Ref& output : outputs) {
    if (!resolver_.is_fed(output)) starts.push_back(output.node);
  }
  std::vector<Ref> found;
  collect(Resolver::kMain, starts, found);
  return found;
}

std::vector<Ref> Effects::of_frame(int frame) {
  if (!resolver_.keeps_any()) return {};
  std::vector<int> all;
  for (size_t i = 0; i < resolver_.frame(frame).body->nodes->size(); ++i) all.push_back(static_cast<int>(i));
  std::vector<Ref> found;
  collect(frame, all, found);
  return found;
}

void Effects::collect(int frame, const std::vector<int>& starts, std::vector<Ref>& found) {
  const Body& body = *resolver_.frame(frame).body;
  std::vector<bool> seen(body.nodes->size());
  struct Visit {
    int node;
    size_t next;
  };
  std::vector<Visit> stack;
  const auto push = [&](int node) {
    if (node == Operand::kArgument || seen[static_cast<size_t>(node)]) return;
    seen[static_cast<size_t>(node)] = true;
    stack.push_back({node, 0});
  };
  for (const int start : starts) {
    push(start);
    while (!stack.empty()) {
      const int at = stack.back().node;
      const NodeDef& node = (*body.nodes)[static_cast<size_t>(at)];
      if (stack.back().next == node.inputs.size()) {
        stack.pop_back();
        look_at(frame, at, found);
        continue;
      }
      const std::string_view input = node.inputs[stack.back().next++];
      const Operand operand = resolver_.program().operand(body, input, node.name);
      const bool fed = !operand.control && resolver_.is_fed(resolver_.ref(frame, operand));
      if (!fed) push(operand.node);
    }
  }
}

void Effects::look_at(int frame, int index, std::vector<Ref>& found) {
  const NodeDef& node = resolver_.node({frame, index, 0});
  if (takes_variable(node.op)) {
    if (touches_kept(frame, index)) found.push_back({frame, index, 0});
  } else if (resolver_.is_call(node)) {
    const std::vector<Ref> inside = of_frame(resolver_.callee(frame, index));
    found.insert(found.end(), inside.begin(), inside.end());
  } else if (Resolver::is_control(node)) {
    const std::vector<int> frames = resolver_.control(frame, index).frames;
    const bool any = std::any_of(frames.begin(), frames.end(), [&](int f) { return !of_frame(f).empty(); });
    if (any) found.push_back({frame, index, 0});
  }
}

bool Effects::touches_kept(int frame, int index) {
  const Body& body = *resolver_.frame(frame).body;
  const std::vector<Operand> operands =
      resolver_.program().data_operands(body, (*body.nodes)[static_cast<size_t>(index)]);
  if (operands.empty()) return false;
  return resolver_.is_kept(resolver_.follow(resolver_.ref(frame, operands[0])));
}

}  // namespace leadline::saved_model
