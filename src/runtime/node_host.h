// SPDX-License-Identifier: Apache-2.0
// What the nodes of a runner may ask for: the subgraphs they call, objects of users' ops, named variables.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "ir/changed_nodes.h"
#include "ops/op.h"
#include "runtime/environment.h"

namespace leadline::runtime {

class CalledSubgraph;
class Runner;

class NodeHost final : public ops::Host {
 public:
  /// For the nodes of `runner`. `caller` has the node that calls its subgraph; null: it is the main one.
  NodeHost(Environment& environment, Runner& runner, const NodeHost* caller);
  ~NodeHost() override;
  NodeHost(const NodeHost&) = delete;
  NodeHost& operator=(const NodeHost&) = delete;

  ops::Callee& callee(int node_index, int subgraph) override;
  const ir::Subgraph& subgraph(int index) const override;
  ops::Resources& resources() override { return *environment_.resources; }
  void checkpoint() override { environment_.control.take_round(); }
  const ops::OpDef* find(const ir::Node& node) const override;
  ops::UserNode& user_node(int node_index) override;
  std::shared_ptr<const void> hold_memory(bool leave) override;

  /// By node and subgraph; those that were asked for.
  using Callees = std::map<std::pair<int, int>, std::unique_ptr<CalledSubgraph>>;
  const Callees& callees() const { return callees_; }
  void forget_callees();
  /// Objects of users' ops, which have state.
  void take_user_nodes(NodeHost& other) { user_nodes_ = std::exchange(other.user_nodes_, {}); }
  void reset_user_nodes();

 private:
  Environment& environment_;
  Runner& runner_;
  const NodeHost* const caller_;
  Callees callees_;
  std::map<int, std::unique_ptr<ops::UserNode>> user_nodes_;  // by node
};

}  // namespace leadline::runtime
