// SPDX-License-Identifier: Apache-2.0
#include "leadline/op_list.h"

#include "core/boundary.h"
#include "ops/registry.h"

namespace leadline {
namespace {

OpInfo describe(const ops::OpDef& row, int code) {
  OpInfo info;
  info.name = row.name();
  info.code = code;
  info.max_version = row.max_version;
  info.runs = row.infer != nullptr;
  info.types = row.types;
  info.fast = row.fast;
  if (!info.runs) info.reason = row.reason.empty() ? "not implemented yet" : row.reason;
  return info;
}

}  // namespace

std::vector<OpInfo> known_ops() try {
  std::vector<OpInfo> ops;
  for (const auto& [code, row] : ops::registry().builtins()) ops.push_back(describe(row, code));
  for (const auto& [name, row] : ops::registry().customs()) {
    if (row.id != op::kLeadlineProbe) ops.push_back(describe(row, -1));  // which is in no file
  }
  return ops;
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
