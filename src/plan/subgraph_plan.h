// SPDX-License-Identifier: Apache-2.0
// The plan of one subgraph as the engine uses it: shapes, kernels, and where every tensor lives.
//
// Nodes are planned in file order, in segments. A segment ends before the first node whose output shapes need data that
// only a run can give; when the run has reached that node, extend() plans the next segment. Every segment has an arena
// of its own. A subgraph without data-dependent shapes has one segment and a complete plan before it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/cancel.h"
#include "ir/changed_nodes.h"
#include "ir/graph.h"
#include "leadline/plan.h"
#include "ops/registry.h"

namespace leadline::plan {

/// The node that a thread is at while this lives.
class NodePlace : public WorkPlace {
 public:
  NodePlace(const ir::Subgraph& subgraph, int node) : WorkPlace(describe, &subgraph, node) {}

 private:
  static std::string describe(const void* subgraph, int node) {
    return ir::describe_node(*static_cast<const ir::Subgraph*>(subgraph), node);
  }
};

/// One tensor while planning and running.
struct PlannedValue {
  Shape shape;
  int64_t bytes = 0;
  Storage storage = Storage::kUnplanned;
  bool shape_known = false;
  bool computed = false;  // contents are valid now
  int segment = -1;       // arena values
  int64_t offset = -1;    // in that arena
  int64_t shift = 0;      // where in the memory of `root` this one begins
  int root = -1;          // value whose memory this one uses; itself when it has memory of its own
  int first_step = -1;    // in the whole subgraph; -1: from the start
  int last_step = -1;
  std::byte* address = nullptr;  // set when the memory exists and, for computed values, is about to be written
};

/// One node to run.
struct Step {
  int node = 0;
  std::unique_ptr<ops::Kernel> kernel;
  int64_t scratch_bytes = 0;
  int64_t scratch_offset = 0;
  int64_t packed_bytes = 0;
  int64_t persistent_bytes = 0;  // memory whose contents stay between runs
  std::string packed_layout;
  std::vector<int> replaced_inputs;  // value indices
  std::vector<ops::TensorPart> parts;
  int64_t live_bytes = 0;
  bool initializer = false;  // gives variables their first state from constants: runs once
};

struct Segment {
  std::vector<Step> steps;
  int first_step = 0;        // number of steps[0] in the subgraph
  int64_t arena_bytes = 0;   // tensors and scratch
  int64_t tensor_bytes = 0;  // end of the highest tensor
  int64_t lower_bound = 0;
  int last_use_node = -1;  // no node after this one reads the arena
};

/// A copy made at the end of a callee's run: see PlanOptions::self_contained.
struct OutputCopy {
  int output = 0;  // position in the subgraph's outputs
  int64_t offset = 0;
  int64_t bytes = 0;
};

struct PlanOptions {
  int threads = 1;
  bool preserve_all = false;
  /// Inputs and outputs live in the arena, never overlap, and outputs that are inputs are copied: what a callee needs.
  bool self_contained = false;
  bool winograd = true;  // as in InterpreterOptions
  bool views = true;     // tensors may live inside others that are made of them, or that they are cut from
  const ir::ChangedNodes* changed = nullptr;  // what runs instead of some nodes; null: the graph as it is
};

/// The growing plan. Not thread-safe.
class SubgraphPlan {
 public:
  SubgraphPlan(const ir::Graph& graph, int subgraph, PlanOptions options, ops::Host& host,
               std::shared_ptr<Budget> budget);

  /// Starts over for these input shapes (in the order of the subgraph's inputs) and plans the first segment.
  /// `bytes` has the sizes of string inputs, 0 elsewhere. Throws Error from an op's validation.
  void start(std::span<const Shape> inputs, std::span<const int64_t> bytes);
  /// Plans the next segment; values that are computed have their data read. Throws Error.
  void extend();
  /// A string input has got contents of this size.
  void note_input_bytes(int value, int64_t bytes) {
    values_[static_cast<size_t>(value)].bytes = bytes;
    first_values_[static_cast<size_t>(value)].bytes = bytes;
  }
  /// Forgets every segment but the first, so that the subgraph can run again.
  void rewind();
  /// The value's shape does not depend on data of a run.
  bool known_before_run(int value) const { return first_values_[static_cast<size_t>(value)].shape_known; }
  bool complete() const { return next_node_ == node_count(); }

  /// What runs as node `index` of the subgraph.
  const ir::Node& node(int index) const { return *nodes_[static_cast<size_t>(index)]; }
  /// Null: the node is as in the file.
  const ir::ChangedNode* changed(int index) const;
  int node_count() const { return static_cast<int>(subgraph_.nodes.size()); }
  /// Nobody makes `value`, because passes merged the nodes around it.
  bool merged_away(int value) const;

  /// The value that stands for `value` as a node's input: itself, or the float16 constant that a DEQUANTIZE would widen
  /// when all its readers take float16 as it is (DENSIFY may come between). Such a DEQUANTIZE has no step.
  int source(int value) const { return value == ir::kAbsent ? value : source_[static_cast<size_t>(value)]; }

  const ir::Subgraph& subgraph() const { return subgraph_; }
  int subgraph_index() const { return subgraph_index_; }
  std::vector<PlannedValue>& values() { return values_; }
  const std::vector<PlannedValue>& values() const { return values_; }
  std::vector<Segment>& segments() { return segments_; }
  const std::vector<Segment>& segments() const { return segments_; }
  const std::vector<OutputCopy>& output_copies() const { return output_copies_; }
  const PlanOptions& options() const { return options_; }
  /// Bytes held for results folded while planning.
  int64_t folded_bytes() const;
  /// Adds the memory of those results.
  void collect_folded(std::vector<std::shared_ptr<const void>>& memory) const;
  /// Heap bytes of the plan's own structures, by a fixed rule (so that plan and count agree).
  int64_t structure_bytes() const;

 private:
  friend class Lifetimes;
  friend class PartSlots;

  const ops::OpDef& definition(const ir::Node& node, int index) const;
  std::vector<ops::Operand> input_operands(const ir::Node& node) const;
  std::vector<ops::Operand> output_operands(const ir::Node& node) const;
  /// Plans one node; false when it must wait for a run.
  bool plan_node(int index, Segment& segment);
  /// Gives a sparse constant that `node` reads its dense form, once.
  void make_dense(int value, int node);
  bool is_static_data(int value) const;
  bool is_output(int value) const { return outputs_[static_cast<size_t>(value)]; }
  bool try_fold(int index, const ops::OpDef& op, std::span<const ops::Operand> inputs,
                std::span<const ops::Operand> outputs, ops::Kernel& kernel, const ops::PrepareContext& prepared);
  void require_plannable(int node, const std::string& what, int64_t bytes) const;
  void compute_last_uses();
  void find_half_constants();
  void find_nodes();
  const ir::ChangedSubgraph* changes() const;

  const ir::Graph& graph_;
  const int subgraph_index_;
  const ir::Subgraph& subgraph_;
  const PlanOptions options_;
  ops::Host& host_;
  std::shared_ptr<Budget> budget_;

  std::vector<const ir::Node*> nodes_;  // what runs as each node
  std::vector<PlannedValue> values_;
  std::vector<Segment> segments_;
  std::vector<OutputCopy> output_copies_;
  std::vector<int> source_;    // by value: see source()
  std::vector<bool> skipped_;  // by node: has no step
  std::vector<bool> outputs_;  // by value: is an output of the subgraph
  std::vector<int> last_use_;  // node that reads the value last, through views too; node count: subgraph output
  struct Folded {
    int value;
    int node;
    std::shared_ptr<const Buffer> memory;
  };
  std::vector<Folded> folded_;
  int absorbed_ = 0;  // nodes whose work others do
  int next_node_ = 0;
  int steps_ = 0;
  std::string missing_;    // state that the node planned last waits for
  bool extended_ = false;  // planning went on after the first segment, perhaps only to fail
  // State after the first segment, for rewind().
  std::vector<PlannedValue> first_values_;
  int first_next_node_ = 0;
  int first_steps_ = 0;
  size_t first_folded_ = 0;
};

}  // namespace leadline::plan
