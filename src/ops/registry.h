// SPDX-License-Identifier: Apache-2.0
// The table of all ops Leadline knows.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace leadline::ops {

/// Rows by code and by custom name. Filled once, then read-only and shared between threads.
class Registry {
 public:
  /// Adds a row. A row of the same code or name replaces an earlier one that cannot run.
  void add(OpDef row);

  /// The row of a builtin op, or null. Custom and fused ops are found by name.
  const OpDef* find(ir::OpCode code, std::string_view custom_name) const;
  /// The row of the op called `name`, builtin or custom, or null.
  const OpDef* find(std::string_view name) const;

  const std::map<ir::OpCode, OpDef>& builtins() const { return builtins_; }
  const std::map<std::string, OpDef, std::less<>>& customs() const { return customs_; }
  /// Ops that only passes make, for a run (ir::kFusedOp).
  const std::map<std::string, OpDef, std::less<>>& fused() const { return fused_; }

 private:
  std::map<ir::OpCode, OpDef> builtins_;
  std::map<std::string, OpDef, std::less<>> customs_;
  std::map<std::string, OpDef, std::less<>> fused_;
};

/// The registry with every op of Leadline. Built on first use.
const Registry& registry();

}  // namespace leadline::ops
