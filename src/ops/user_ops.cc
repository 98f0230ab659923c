// SPDX-License-Identifier: Apache-2.0
#include "ops/user_ops.h"

#include <mutex>
#include <utility>

namespace leadline::ops {
namespace {

/// Never destroyed: registrations may hold objects of a language runtime that is gone when static objects go.
struct Table {
  std::mutex mutex;
  UserOpTable ops;
};
Table& table() {
  static auto& instance = *new Table;
  return instance;
}

}  // namespace

void add_user_op(const std::string& name, UserOp op) {
  auto entry = std::make_shared<const UserOp>(std::move(op));
  const std::lock_guard lock(table().mutex);
  // The old entry leaves with `entry`, after the lock: its destructor is the user's.
  std::swap(table().ops[name], entry);
}

bool remove_user_op(std::string_view name) {
  std::shared_ptr<const UserOp> removed;
  const std::lock_guard lock(table().mutex);
  const auto it = table().ops.find(name);
  if (it == table().ops.end()) return false;
  removed = std::move(it->second);
  table().ops.erase(it);
  return true;
}

std::vector<std::string> user_op_names() {
  const std::lock_guard lock(table().mutex);
  std::vector<std::string> names;
  for (const auto& [name, op] : table().ops) names.push_back(name);
  return names;
}

UserOpTable user_ops_of(const ir::Graph& graph) {
  UserOpTable result;
  const std::lock_guard lock(table().mutex);
  for (const ir::Subgraph& subgraph : graph.subgraphs) {
    for (const ir::Node& node : subgraph.nodes) {
      if (!node.op.is_custom()) continue;
      if (const auto it = table().ops.find(node.op.name()); it != table().ops.end()) result.insert(*it);
    }
  }
  return result;
}

const OpDef& user_op_row() {
  static const OpDef row{
      .id = ir::OpId::custom("a registered op"),
      .max_inputs = -1,
      .min_outputs = 0,
      .max_outputs = -1,
      .infer = [](InferContext& c) { c.host().user_node(c.node_index()).infer(c); },
      .prepare = [](PrepareContext& c) { return c.host().user_node(c.node_index()).prepare(c); },
      .pure = false,
  };
  return row;
}

const OpDef& missing_op_row() {
  static const OpDef row{
      .id = ir::OpId::custom("a missing op"),
      .max_inputs = -1,
      .min_outputs = 0,
      .max_outputs = -1,
      .infer =
          [](InferContext& c) {
            for (int i = 0; i < c.output_count(); ++i) c.set_output_shape(i, c.output(i).value->shape);
          },
      .prepare = [](PrepareContext&) { return make_kernel([](RunContext& c) { c.require(false, "cannot run"); }); },
      .pure = false,
  };
  return row;
}

}  // namespace leadline::ops
