// SPDX-License-Identifier: Apache-2.0
// Ops that users register by their custom name. The engine knows them as UserNodes, one per node; src/api makes those
// from the public interface.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace leadline::ops {

/// One node of a registered op. Not thread-safe; belongs to one runner.
class UserNode {
 public:
  virtual ~UserNode() = default;
  /// As OpDef::infer and OpDef::prepare. Kernels refer to the node and do not outlive it.
  virtual void infer(InferContext& context) = 0;
  virtual std::unique_ptr<Kernel> prepare(PrepareContext& context) = 0;
  /// Back to the state before the first run.
  virtual void reset() = 0;
};

/// Makes the object for one node. Throws Error naming the node.
using UserOp = std::function<std::unique_ptr<UserNode>(const ir::Subgraph& subgraph, int node_index)>;
using UserOpTable = std::map<std::string, std::shared_ptr<const UserOp>, std::less<>>;

/// The process-wide table. All of these are thread-safe and call nothing of the user's.
void add_user_op(const std::string& name, UserOp op);
bool remove_user_op(std::string_view name);
std::vector<std::string> user_op_names();
/// What is registered now for the custom ops of `graph`.
UserOpTable user_ops_of(const ir::Graph& graph);

/// The row of all registered ops: asks Host::user_node().
const OpDef& user_op_row();
/// The row for planning around an op that cannot run: outputs have the shapes of the file.
const OpDef& missing_op_row();

}  // namespace leadline::ops
