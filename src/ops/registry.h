// SPDX-License-Identifier: Apache-2.0
// The table of all ops Leadline knows.
#pragma once

#include <map>
#include <string_view>

#include "ops/op.h"

namespace leadline::ops {

/// Rows by op. Filled once, then read-only and shared between threads.
class Registry {
 public:
  /// Throws Error(kInternal) when there is a row of this op already.
  void add(OpDef row);

  /// The row of an op; null: Leadline does not know it.
  const OpDef* find(const ir::OpId& op) const;
  /// For what names ops (importers, builders, recipes): the builtin op called `name`, else the custom op; or null.
  const OpDef* find_named(std::string_view name) const;
  /// The builtin op with this number, or null.
  const OpDef* find_builtin(ir::OpCode code) const;

  using ByName = std::map<std::string_view, OpDef>;
  const std::map<ir::OpCode, OpDef>& builtins() const { return builtins_; }
  const ByName& customs() const { return customs_; }
  /// Ops that only passes make, for a run.
  const ByName& fused() const { return fused_; }

 private:
  std::map<ir::OpCode, OpDef> builtins_;
  ByName customs_;
  ByName fused_;
};

/// The registry with every op of Leadline. Built on first use.
const Registry& registry();

/// The row of a node's op; null: Leadline does not know it.
inline const OpDef* row_of(const ir::Node& node) { return registry().find(node.op); }

/// A node of this op with its default attributes, version 1.
ir::Node make_node(const ir::OpId& op, std::vector<int> inputs, std::vector<int> outputs);

}  // namespace leadline::ops
