// SPDX-License-Identifier: Apache-2.0
#include "ops/registry.h"

#include "ops/families.h"

namespace leadline::ops {

void Registry::add(OpDef row) {
  if (row.code == ir::kCustomOp) {
    customs_.insert_or_assign(std::string(row.name), row);
  } else if (row.code == ir::kFusedOp) {
    fused_.insert_or_assign(std::string(row.name), row);
  } else {
    builtins_.insert_or_assign(row.code, row);
  }
}

const OpDef* Registry::find(ir::OpCode code, std::string_view custom_name) const {
  if (code == ir::kCustomOp || code == ir::kFusedOp) {
    const auto& rows = code == ir::kCustomOp ? customs_ : fused_;
    const auto it = rows.find(custom_name);
    return it == rows.end() ? nullptr : &it->second;
  }
  const auto it = builtins_.find(code);
  return it == builtins_.end() ? nullptr : &it->second;
}

const OpDef* Registry::find(std::string_view name) const {
  for (const auto& [code, row] : builtins_) {
    if (row.name == name) return &row;
  }
  return find(ir::kCustomOp, name);
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
