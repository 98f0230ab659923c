// SPDX-License-Identifier: Apache-2.0
#include "runtime/missing_ops.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/join.h"
#include "ops/registry.h"

namespace leadline::runtime {
namespace {

using Kind = MissingOp::Kind;

MissingOp describe(const ir::Subgraph& subgraph, size_t index, const ops::OpDef* row) {
  const ir::Node& node = subgraph.nodes[index];
  MissingOp op{node.op.name(), Kind::kBuiltin, 0, {}};
  if (!node.op.is_custom()) {
    op.reason = row == nullptr || row->reason.empty() ? "Leadline has no kernel for it" : row->reason;
  } else if (node.op.name().starts_with("Flex")) {
    op.kind = Kind::kFlex;
    op.reason = fmt::format("TensorFlow's op {}, which is not among the Flex ops that Leadline computes; first at {}",
                            node.op.name().substr(4), ir::describe_node(subgraph, static_cast<int>(index)));
  } else {
    op.kind = Kind::kCustom;
    op.reason = "a custom op without a registered implementation";
  }
  return op;
}

/// "'FlexErf' (2 nodes)" for each op of this kind.
std::vector<std::string> names_of(const std::vector<MissingOp>& ops, Kind kind) {
  std::vector<std::string> names;
  for (const MissingOp& op : ops) {
    if (op.kind != kind) continue;
    names.push_back(fmt::format("'{}'{}", op.name, op.nodes == 1 ? "" : fmt::format(" ({} nodes)", op.nodes)));
  }
  return names;
}

const std::string& first_name(const std::vector<MissingOp>& ops, Kind kind) {
  return std::find_if(ops.begin(), ops.end(), [&](const MissingOp& op) { return op.kind == kind; })->name;
}

}  // namespace

std::vector<MissingOp> find_missing_ops(const ir::Graph& graph, const ops::UserOpTable& registered) {
  std::vector<MissingOp> missing;
  std::map<ir::OpId, size_t> places;
  for (const ir::Subgraph& subgraph : graph.subgraphs) {
    for (size_t index = 0; index < subgraph.nodes.size(); ++index) {
      const ir::Node& node = subgraph.nodes[index];
      const ops::OpDef* row = ops::row_of(node);
      if (row != nullptr && row->infer != nullptr) continue;
      if (node.op.is_custom() && registered.contains(node.op.name())) continue;
      const auto [place, is_new] = places.try_emplace(node.op, missing.size());
      if (is_new) missing.push_back(describe(subgraph, index, row));
      ++missing[place->second].nodes;
    }
  }
  return missing;
}

std::string missing_ops_message(const std::vector<MissingOp>& ops) {
  std::vector<std::string> all;
  for (const MissingOp& op : ops) {
    all.push_back(op.kind == Kind::kBuiltin ? op.name : fmt::format("custom op '{}'", op.name));
  }
  std::string text = fmt::format("this model needs ops that Leadline cannot run: {}", join(all, ", "));
  for (const MissingOp& op : ops) {
    if (op.kind == Kind::kBuiltin) text += fmt::format("\n{}: {}.", op.name, op.reason);
  }
  if (const auto names = names_of(ops, Kind::kCustom); !names.empty()) {
    text += fmt::format(
        "\nCustom ops without an implementation: {}. Register one before the interpreter is made: "
        "leadline.register_op(\"{}\", ...) in Python, leadline::register_op of leadline/custom_op.h in C++.",
        join(names, ", "), first_name(ops, Kind::kCustom));
  }
  if (const auto names = names_of(ops, Kind::kFlex); !names.empty()) {
    text += fmt::format(
        "\nFlex ops (Select TF ops): {}. These are TensorFlow ops that the converter could not express as builtin ops, "
        "and none of those that Leadline computes itself (`leadline ops` lists them). Convert the model again with "
        "TFLITE_BUILTINS as the only entry of target_spec.supported_ops, replacing the ops that the converter then "
        "names "
        "by others; or register an implementation of your own, leadline.register_op(\"{}\", ...).",
        join(names, ", "), first_name(ops, Kind::kFlex));
    for (const MissingOp& op : ops) {
      if (op.kind == Kind::kFlex) text += fmt::format("\n{}: {}.", op.name, op.reason);
    }
  }
  return text;
}

}  // namespace leadline::runtime
