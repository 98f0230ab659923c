// SPDX-License-Identifier: Apache-2.0
// One subgraph under change: who makes and who uses each value, kept right while a pass rewrites nodes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ir/changed_nodes.h"
#include "ir/graph.h"
#include "ir/sources.h"
#include "ops/op_ids.h"

namespace leadline::passes {

/// Sizes of a value; -1 where they are not known before a run.
std::vector<int64_t> dims_of(const ir::Value& value);

/// Whether the node only changes the shape of its first input.
bool is_reshape(const ir::Node& node);

/// Whether running the node twice, or not at all, makes no difference but to its outputs.
bool is_pure(const ir::Graph& graph, const ir::Subgraph& subgraph, const ir::Node& node);

/// What passes edit: a graph for good, or the nodes that its runs see. In runs the graph stays as it is; changed nodes
/// are laid over it, nodes and values keep their numbers, and there are no new values. A handle, cheap to copy.
class PassTarget {
 public:
  PassTarget(ir::Graph& graph) : graph_(&graph), changed_(&graph) {}  // NOLINT(google-explicit-constructor)
  /// `overlays` has an entry for each subgraph.
  PassTarget(const ir::Graph& graph, std::vector<ir::NodeOverlay>& overlays) : graph_(&graph), overlays_(&overlays) {}

  const ir::Graph& graph() const { return *graph_; }
  int subgraph_count() const { return static_cast<int>(graph_->subgraphs.size()); }
  bool for_runs() const { return overlays_ != nullptr; }
  /// The graph itself. Throws Error(kInternal) for runs.
  ir::Graph& change() const;
  ir::NodeOverlay& overlay(int subgraph) const { return (*overlays_)[static_cast<size_t>(subgraph)]; }

 private:
  const ir::Graph* graph_;
  ir::Graph* changed_ = nullptr;
  std::vector<ir::NodeOverlay>* overlays_ = nullptr;
};

/// One subgraph of a target. Removed nodes keep their number until the editor is destroyed; for good they are erased
/// then. Nodes stay in their order: the editor only changes nodes and adds constants.
class Editor {
 public:
  Editor(PassTarget target, int subgraph);
  ~Editor();
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;

  const ir::Graph& graph() const { return target_.graph(); }
  const ir::Subgraph& subgraph() const { return graph().subgraphs[static_cast<size_t>(index_)]; }
  /// Memory may not grow, and there are no new values.
  bool for_runs() const { return target_.for_runs(); }
  const ir::Value& value(int v) const { return subgraph().value(v); }
  const ir::Node& node(int n) const { return *nodes_[static_cast<size_t>(n)]; }
  int node_count() const { return static_cast<int>(nodes_.size()); }
  bool removed(int n) const { return removed_[static_cast<size_t>(n)]; }

  /// The node that writes `v`, or -1.
  int producer(int v) const { return v == ir::kAbsent ? -1 : producer_[static_cast<size_t>(v)]; }
  /// The nodes that read `v`, each once.
  const std::set<int>& consumers(int v) const { return consumers_[static_cast<size_t>(v)]; }
  bool is_output(int v) const { return is_output_[static_cast<size_t>(v)]; }
  bool is_input(int v) const { return is_input_[static_cast<size_t>(v)]; }
  /// One node reads `v`, in one of its operands, and nothing else does.
  bool used_once(int v) const;

  void set_inputs(int n, std::vector<int> inputs);
  void set_input(int n, int i, int v);
  void set_attributes(int n, std::shared_ptr<const ir::Attributes> attributes);
  /// Each node becomes the other's op, with its attributes; operands stay.
  void swap_ops(int a, int b);
  /// The node writes what it wrote, but as op `op` of these inputs. Without attributes it has the op's own.
  void become(int n, const ir::OpId& op, std::vector<int> inputs,
              std::shared_ptr<const ir::Attributes> attributes = nullptr);
  /// The node reads and writes nothing any more.
  void remove(int n);
  /// Node `n` writes `v` instead of its only output, which is not used any more. The node that wrote `v` is removed
  /// before.
  void set_output(int n, int v);
  /// Every reader of `from` reads `to` instead. False, and nothing changed, when `from` is an output of the subgraph
  /// and `to` cannot take its place.
  bool replace(int from, int to);

  /// For good only.
  ir::Value& change_value(int v);
  /// The value becomes a constant with these bytes.
  void make_constant(int v, std::vector<std::byte> bytes);
  void make_constant(int v, ir::Source source);

  /// A new constant. Its name is `name`.
  int add_constant(const std::string& name, DType dtype, const Shape& shape, std::vector<std::byte> bytes);
  int add_constant(const std::string& name, DType dtype, const Shape& shape, ir::Source source);
  template <typename T>
  int add_constant(const std::string& name, DType dtype, const Shape& shape, const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return add_constant(name, dtype, shape, std::vector<std::byte>(bytes.begin(), bytes.end()));
  }

  bool is_constant(int v) const { return v != ir::kAbsent && value(v).constant && !value(v).sparsity; }
  /// Contents of a constant as a source, wherever they are.
  ir::Source source_of(int v) const;
  /// Reads a constant's source: the bytes are in memory afterwards.
  void materialize(int v);
  /// Contents of an int32 or int64 constant in memory.
  std::optional<std::vector<int64_t>> ints(int v) const;
  /// The one number of a float32 constant that has one.
  std::optional<float> number(int v) const;
  /// Contents of a float32 constant of at most `limit` elements; sources are read.
  std::optional<std::vector<float>> floats(int v, int64_t limit) const;

 private:
  int add_value(const std::string& name, DType dtype, const Shape& shape);
  ir::Node& change(int n);

  PassTarget target_;
  int index_;
  std::vector<const ir::Node*> nodes_;  // of the graph, or of the overlay
  std::vector<int> producer_;
  std::vector<std::set<int>> consumers_;
  std::vector<bool> is_output_;
  std::vector<bool> is_input_;
  std::vector<bool> removed_;
};

/// Calls `rewrite(editor, subgraph)` for every subgraph; the sum of what it returns.
template <typename Rewrite>
int for_each_subgraph(PassTarget target, Rewrite&& rewrite) {
  int changes = 0;
  for (int s = 0; s < target.subgraph_count(); ++s) {
    Editor editor(target, s);
    changes += rewrite(editor, s);
  }
  return changes;
}

/// Calls `rewrite(editor, node)` for every node that is not removed, in order; how often it returned true.
template <typename Rewrite>
int for_each_node(Editor& editor, Rewrite&& rewrite) {
  int changes = 0;
  for (int n = 0; n < editor.node_count(); ++n) {
    if (!editor.removed(n) && rewrite(editor, n)) ++changes;
  }
  return changes;
}
template <typename Rewrite>
int for_each_node(PassTarget target, Rewrite&& rewrite) {
  return for_each_subgraph(target, [&](Editor& editor, int) { return for_each_node(editor, rewrite); });
}

/// The fused activation of attributes that have one; nothing for others.
std::optional<ir::Activation> activation_of(const ir::Attributes& attributes);
/// The same attributes with another activation.
std::shared_ptr<const ir::Attributes> with_activation(const ir::Attributes& attributes, ir::Activation activation);

}  // namespace leadline::passes
