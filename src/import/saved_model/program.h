// SPDX-License-Identifier: Apache-2.0
// A meta graph with its names resolved: nodes of the main graph and of functions by index, output names by number.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "import/saved_model/protos.h"
#include "leadline/error.h"

namespace leadline::saved_model {

/// What an input string means: output `output` of node `node`, argument `output` of the function (node == kArgument),
/// or only "after this node" (control).
struct Operand {
  static constexpr int kArgument = -1;
  int node = 0;
  int output = 0;
  bool control = false;
};

/// The main graph or a function. Does not change once made.
struct Body {
  const FunctionDef* function = nullptr;  // null for the main graph
  const std::vector<NodeDef>* nodes = nullptr;
  std::unordered_map<std::string_view, int> node_index;
  std::unordered_map<std::string_view, int> argument_index;
  std::vector<std::string_view> returns;  // one input string per output of a function
};

class Program {
 public:
  /// Both must outlive the program.
  Program(const MetaGraph& meta, WireFile& file);

  const MetaGraph& meta() const noexcept { return meta_; }
  WireFile& file() const noexcept { return file_; }
  const Body& main() const noexcept { return main_; }
  bool has_function(std::string_view name) const { return functions_.contains(name); }
  /// Throws Error(kInvalidModel) when there is no such function.
  const Body& function(std::string_view name);

  /// Throws Error(kInvalidModel), naming `user`, when the string refers to nothing.
  Operand operand(const Body& body, std::string_view input, std::string_view user) const;
  /// The operands of a node that carry data.
  std::vector<Operand> data_operands(const Body& body, const NodeDef& node) const;
  /// Null when the file does not define the op.
  const OpSignature* op_def(std::string_view op) const;
  /// Outputs of a node.
  int output_count(const NodeDef& node) const;
  /// The attribute of the node, or its op's default, or null.
  const AttrValue* attr(const NodeDef& node, std::string_view name) const;

  /// What an op returns, and of how many tensors one of these consists.
  const std::vector<ArgDef>& output_args(std::string_view op) const;
  int64_t arg_size(const NodeDef& node, const ArgDef& arg) const;

  /// "saved_model.pb, node 'a/b' (Conv2D): ...".
  [[noreturn]] void fail_node(const NodeDef& node, ErrorCode code, std::string_view problem) const;

 private:
  int output_number(const NodeDef& node, std::string_view arg, int64_t index, std::string_view user) const;
  static void index_nodes(Body& body, const WireFile& file);

  const MetaGraph& meta_;
  WireFile& file_;
  Body main_;
  std::unordered_map<std::string_view, const FunctionDef*> functions_;
  std::unordered_map<std::string_view, std::unique_ptr<Body>> bodies_;  // made when first asked for
  std::unordered_map<std::string_view, const OpSignature*> ops_;
  mutable std::unordered_map<std::string_view, std::vector<ArgDef>> undefined_;  // outputs of ops not in ops_
};

}  // namespace leadline::saved_model
