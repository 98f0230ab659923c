// SPDX-License-Identifier: Apache-2.0
#include "runtime/node_host.h"

#include "ops/registry.h"
#include "runtime/callee.h"
#include "runtime/runner.h"

namespace leadline::runtime {

NodeHost::NodeHost(Environment& environment, Runner& runner, const NodeHost* caller)
    : environment_(environment), runner_(runner), caller_(caller) {}

NodeHost::~NodeHost() = default;

ops::Callee& NodeHost::callee(int node_index, int subgraph) {
  auto found = callees_.find({node_index, subgraph});
  if (found == callees_.end()) {
    auto callee = std::make_unique<CalledSubgraph>(environment_, subgraph, runner_.changed(), *this);
    found = callees_.emplace(std::pair(node_index, subgraph), std::move(callee)).first;
  }
  return *found->second;
}

const ir::Subgraph& NodeHost::subgraph(int index) const {
  return environment_.graph->subgraphs[static_cast<size_t>(index)];
}

const ops::OpDef* NodeHost::find(const ir::Node& node) const {
  if (node.op.is_custom() && environment_.user_ops.contains(node.op.name())) return &ops::user_op_row();
  const ops::OpDef* row = ops::row_of(node);
  const bool missing = row == nullptr || row->infer == nullptr;
  return missing && environment_.settings.plan_missing ? &ops::missing_op_row() : row;
}

ops::UserNode& NodeHost::user_node(int node_index) {
  auto it = user_nodes_.find(node_index);
  if (it == user_nodes_.end()) {
    const ir::Subgraph& subgraph = runner_.outline().subgraph();
    const ops::UserOp& make = *environment_.user_ops.at(subgraph.nodes[static_cast<size_t>(node_index)].op.name());
    it = user_nodes_.emplace(node_index, make(subgraph, node_index)).first;
  }
  return *it->second;
}

void NodeHost::forget_callees() { callees_.clear(); }

void NodeHost::reset_user_nodes() {
  for (auto& [index, node] : user_nodes_) node->reset();
}

std::shared_ptr<const void> NodeHost::hold_memory(bool leave) {
  const NodeHost* main = this;
  while (main->caller_ != nullptr) main = main->caller_;
  auto memory = std::make_shared<std::vector<std::shared_ptr<const void>>>();
  memory->push_back(environment_.graph);
  main->runner_.collect_memory(*memory);
  if (leave) environment_.control.leave_memory();
  return memory;
}

}  // namespace leadline::runtime
