// SPDX-License-Identifier: Apache-2.0
// A subgraph as it will run, whatever its shapes: which node runs where, which values stand for others, who reads a
// value last. Made once and not changed.
#pragma once

#include <vector>

#include "ir/changed_nodes.h"
#include "ir/graph.h"
#include "ops/op.h"

namespace leadline::plan {

class Outline {
 public:
  /// `changed` is what passes made of some nodes; null: the graph runs as it is. With `keep_all` every node of the
  /// graph has a step. Refers to `graph` and `changed`; `host` is asked for rows only.
  Outline(const ir::Graph& graph, int subgraph, const ir::ChangedNodes* changed, bool keep_all, const ops::Host& host);

  const ir::Subgraph& subgraph() const { return subgraph_; }
  int subgraph_index() const { return subgraph_index_; }
  int node_count() const { return static_cast<int>(nodes_.size()); }
  int value_count() const { return static_cast<int>(source_.size()); }
  /// What runs as node `index`.
  const ir::Node& node(int index) const { return *nodes_[static_cast<size_t>(index)]; }
  /// Its row; null: there is none.
  const ops::OpDef* row(int index) const { return rows_[static_cast<size_t>(index)]; }
  /// Null: the node is as in the file.
  const ir::ChangedNode* changed(int index) const;
  /// False: others do its work, or it is not needed.
  bool has_step(int index) const { return has_step_[static_cast<size_t>(index)]; }
  /// Nodes whose work others do.
  int absorbed_count() const;

  /// The value that stands for `value` as a node's input: itself, or the float16 constant that a DEQUANTIZE would widen
  /// when all its readers take float16 as it is (DENSIFY may come between). Such a DEQUANTIZE has no step.
  int source(int value) const { return value == ir::kAbsent ? value : source_[static_cast<size_t>(value)]; }
  bool is_output(int value) const { return is_output_[static_cast<size_t>(value)]; }
  /// The node that reads `value` last, through views too; -1: none, node_count(): it is an output of the subgraph.
  int last_use(int value) const { return last_use_[static_cast<size_t>(value)]; }
  /// How many inputs of the file's nodes `value` is.
  int read_count(int value) const { return read_count_[static_cast<size_t>(value)]; }
  /// Nothing computes `value`, because passes merged the nodes around it.
  bool is_merged_away(int value) const;

 private:
  const ir::ChangedSubgraph* changes() const;
  void find_nodes();
  void find_last_uses();
  void find_half_constants();

  const int subgraph_index_;
  const ir::Subgraph& subgraph_;
  const ir::ChangedNodes* const changed_;
  std::vector<const ir::Node*> nodes_;
  std::vector<const ops::OpDef*> rows_;
  std::vector<bool> has_step_;
  std::vector<int> source_;
  std::vector<bool> is_output_;
  std::vector<int> last_use_;
  std::vector<int> read_count_;
};

}  // namespace leadline::plan
