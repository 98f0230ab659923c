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

#include "ir/graph.h"
#include "ir/sources.h"
#include "ops/op_ids.h"

namespace leadline::passes {

/// Sizes of a value; -1 where they are not known before a run.
std::vector<int64_t> dims_of(const ir::Value& value);

/// Whether the node gives the elements of its first input another shape, and nothing else.
bool is_reshape(const ir::Node& node);

/// Whether running the node twice, or not at all, makes no difference but to its outputs.
bool is_pure(const ir::Graph& graph, const ir::Subgraph& subgraph, const ir::Node& node);

/// Removed nodes keep their number until the editor goes; then they are erased, unless the graph has fixed numbers.
/// Nodes added while an editor lives must be put where their inputs exist: the editor only changes nodes and adds
/// constants (none to a graph of fixed numbers).
class Editor {
 public:
  Editor(ir::Graph& graph, int subgraph);
  ~Editor();
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;

  ir::Graph& graph() { return graph_; }
  ir::Subgraph& subgraph() { return graph_.subgraphs[static_cast<size_t>(index_)]; }
  ir::Value& value(int v) { return subgraph().values[static_cast<size_t>(v)]; }
  /// For looking; operands are changed by the functions below.
  const ir::Node& node(int n) { return subgraph().nodes[static_cast<size_t>(n)]; }
  int node_count() { return static_cast<int>(subgraph().nodes.size()); }
  bool removed(int n) const { return removed_[static_cast<size_t>(n)]; }

  /// The node that writes `v`, or -1.
  int producer(int v) const { return v == ir::kAbsent ? -1 : producer_[static_cast<size_t>(v)]; }
  /// The nodes that read `v`, each once.
  const std::set<int>& consumers(int v) const { return consumers_[static_cast<size_t>(v)]; }
  bool is_output(int v) const { return is_output_[static_cast<size_t>(v)]; }
  bool is_input(int v) const { return is_input_[static_cast<size_t>(v)]; }
  /// One node reads `v`, in one of its operands, and nobody else.
  bool used_once(int v);

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
  /// Node `n` writes `v` instead of its only output, which nobody uses any more. Whoever wrote `v` is removed before.
  void set_output(int n, int v);
  /// Every reader of `from` reads `to` instead. False, and nothing changed, when `from` is an output of the subgraph
  /// and `to` cannot take its place.
  bool replace(int from, int to);

  /// A new constant. Its name is `name`.
  int add_constant(const std::string& name, DType dtype, const Shape& shape, std::vector<std::byte> bytes);
  int add_constant(const std::string& name, DType dtype, const Shape& shape, ir::Source source);
  template <typename T>
  int add_constant(const std::string& name, DType dtype, const Shape& shape, const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return add_constant(name, dtype, shape, std::vector<std::byte>(bytes.begin(), bytes.end()));
  }

  bool is_constant(int v) { return v != ir::kAbsent && value(v).constant && !value(v).sparsity; }
  /// Contents of a constant as a source, wherever they are.
  ir::Source source_of(int v);
  /// Reads a constant's source: the bytes are in memory afterwards.
  void materialize(int v);
  /// Contents of an int32 or int64 constant in memory.
  std::optional<std::vector<int64_t>> ints(int v);
  /// The one number of a float32 constant that has one.
  std::optional<float> number(int v);
  /// Contents of a float32 constant of at most `limit` elements; sources are read.
  std::optional<std::vector<float>> floats(int v, int64_t limit);

 private:
  int add_value(const std::string& name, DType dtype, const Shape& shape);

  ir::Graph& graph_;
  int index_;
  std::vector<int> producer_;
  std::vector<std::set<int>> consumers_;
  std::vector<bool> is_output_;
  std::vector<bool> is_input_;
  std::vector<bool> removed_;
};

/// Calls `rewrite(editor, subgraph)` for every subgraph; the sum of what it gives.
template <typename Rewrite>
int for_each_subgraph(ir::Graph& graph, Rewrite&& rewrite) {
  int changes = 0;
  for (int s = 0; s < static_cast<int>(graph.subgraphs.size()); ++s) {
    Editor editor(graph, s);
    changes += rewrite(editor, s);
  }
  return changes;
}

/// Calls `rewrite(editor, node)` for every node that is not removed, in order; how often it gave true.
template <typename Rewrite>
int for_each_node(Editor& editor, Rewrite&& rewrite) {
  int changes = 0;
  for (int n = 0; n < editor.node_count(); ++n) {
    if (!editor.removed(n) && rewrite(editor, n)) ++changes;
  }
  return changes;
}
template <typename Rewrite>
int for_each_node(ir::Graph& graph, Rewrite&& rewrite) {
  return for_each_subgraph(graph, [&](Editor& editor, int) { return for_each_node(editor, rewrite); });
}

/// The fused activation of attributes that have one; nothing for others.
std::optional<ir::Activation> activation_of(const ir::Attributes& attributes);
/// The same attributes with another activation.
std::shared_ptr<const ir::Attributes> with_activation(const ir::Attributes& attributes, ir::Activation activation);

}  // namespace leadline::passes
