// SPDX-License-Identifier: Apache-2.0
// Makes the plan of one subgraph, segment by segment.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/buffer.h"
#include "core/cancel.h"
#include "ir/changed_nodes.h"
#include "ir/graph.h"
#include "ops/op.h"
#include "plan/outline.h"
#include "plan/subgraph_plan.h"

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

/// What a run has computed so far. Shapes that depend on data are planned from it.
class ComputedValues {
 public:
  virtual ~ComputedValues() = default;
  /// The contents of `value` are valid now.
  virtual bool is_computed(int value) const = 0;
  /// Where they are; null when they have no bytes.
  virtual const std::byte* data(int value) const = 0;
};

/// Not thread-safe.
class Planner {
 public:
  /// `changed` is what passes made of some nodes; null: the graph runs as it is. Refers to all of these.
  Planner(const ir::Graph& graph, int subgraph, const PlanOptions& options, const ir::ChangedNodes* changed,
          ops::Host& host, std::shared_ptr<Budget> budget);

  /// Starts over for these input shapes (in the order of the subgraph's inputs) and plans the first segment.
  /// `bytes` has the sizes of string inputs, 0 elsewhere. Throws Error from an op's validation.
  void start(std::span<const Shape> inputs, std::span<const int64_t> bytes);
  /// Plans the next segment when a run has computed everything before it. Throws Error.
  void extend(const ComputedValues& computed);
  /// Forgets every segment but the first, so that the subgraph can run again. False: there was nothing to forget.
  bool rewind();
  /// A string input has got contents of this size.
  void note_input_bytes(int value, int64_t bytes);

  const Outline& outline() const { return outline_; }
  const PlanOptions& options() const { return options_; }
  const SubgraphPlan& plan() const { return plan_; }
  /// The value's shape does not depend on data of a run.
  bool known_before_run(int value) const { return first_.value(value).shape_known; }
  /// No shape depends on data of a run.
  bool complete_before_run() const { return first_.complete; }
  /// The contents of a fixed value (PlannedValue::is_fixed); null where it has no bytes, and for others.
  const std::byte* fixed_data(int value) const;

  /// Bytes held for results folded while planning.
  int64_t folded_bytes() const { return folded_bytes_; }
  /// Adds the memory of those results.
  void collect_folded(std::vector<std::shared_ptr<const void>>& memory) const;
  /// Heap bytes of the plan and of what a runner keeps for it, by a fixed rule (so that plan and count agree).
  int64_t structure_bytes() const;

 private:
  void plan_values();
  void plan_inputs(std::span<const Shape> inputs, std::span<const int64_t> bytes);
  void plan_segment(const ComputedValues* computed);
  /// Plans one node; false when it must wait for a run.
  bool plan_node(int index, const ComputedValues* computed, Segment& segment);
  std::vector<ops::Operand> input_operands(const ir::Node& node, const ComputedValues* computed) const;
  std::vector<ops::Operand> output_operands(const ir::Node& node) const;
  void note_outputs(int index, std::span<const ops::Operand> outputs);
  /// Makes a sparse constant that `node` reads dense, once. False: it is dense.
  bool make_dense(int value, int node);
  void keep_folded(int value, std::shared_ptr<const Buffer> memory);
  bool reads_fixed_only(const ir::Node& node) const;
  bool try_fold(int index, std::span<const ops::Operand> inputs, std::span<const ops::Operand> outputs,
                ops::Kernel& kernel, const ops::PrepareContext& prepared);
  void require_plannable(int node, const std::string& what, int64_t bytes) const;

  const PlanOptions options_;
  ops::Host& host_;
  const std::shared_ptr<Budget> budget_;
  const Outline outline_;
  const ir::Subgraph& subgraph_;
  SubgraphPlan plan_;
  std::unordered_map<int, std::shared_ptr<const Buffer>> folded_;  // by value
  int64_t folded_bytes_ = 0;                                       // of all of them
  std::string missing_;                                            // state that the node planned last waits for
  bool extended_ = false;  // planning went on after the first segment, perhaps only to fail
  /// The state after the first segment, for rewind(); its steps are those of plan_.
  SubgraphPlan first_;
};

}  // namespace leadline::plan
