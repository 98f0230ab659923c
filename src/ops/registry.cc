// SPDX-License-Identifier: Apache-2.0
#include "ops/registry.h"

#include <utility>

#include "core/error.h"
#include "ops/families.h"

namespace leadline::ops {

void Registry::add(OpDef row) {
  const ir::OpId id = row.id;
  const bool added = id.is_builtin()  ? builtins_.try_emplace(id.code(), row).second
                     : id.is_custom() ? customs_.try_emplace(id.name(), row).second
                                      : fused_.try_emplace(id.name(), row).second;
  require(added, ErrorCode::kInternal, "op {} is registered twice", id.name());
}

const OpDef* Registry::find(const ir::OpId& op) const {
  if (op.is_builtin()) return find_builtin(op.code());
  const ByName& rows = op.is_custom() ? customs_ : fused_;
  const auto it = rows.find(op.name());
  return it == rows.end() ? nullptr : &it->second;
}

const OpDef* Registry::find_named(std::string_view name) const {
  for (const auto& [code, row] : builtins_) {
    if (row.name() == name) return &row;
  }
  return find(ir::OpId::custom(name));
}

const OpDef* Registry::find_builtin(ir::OpCode code) const {
  const auto it = builtins_.find(code);
  return it == builtins_.end() ? nullptr : &it->second;
}

ir::Node make_node(const ir::OpId& op, std::vector<int> inputs, std::vector<int> outputs) {
  const OpDef* row = registry().find(op);
  require(row != nullptr, ErrorCode::kInternal, "unknown op '{}'", op.name());
  ir::Node node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.attributes = new_attributes(*row);
  return node;
}

const Registry& registry() {
  static const Registry instance = [] {
    Registry all;
    register_named_only(all);
#define LEADLINE_OP_FAMILY(family) register_##family(all);
#include "ops/families.inc"
#undef LEADLINE_OP_FAMILY
    return all;
  }();
  return instance;
}

}  // namespace leadline::ops
