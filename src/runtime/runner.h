// SPDX-License-Identifier: Apache-2.0
// Runs one subgraph by its plan: the main one for an interpreter, others for the control-flow nodes that call them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ops/op.h"
#include "plan/subgraph_plan.h"
#include "runtime/session.h"

namespace leadline::runtime {

/// What a runner and its callees still have to take from the budget before they can run.
struct MemoryNeeds {
  int64_t packed_weights = 0;  // not packed by anyone yet
  int64_t shared_weights = 0;  // packed already, by another interpreter of the model
  int64_t arena = 0;
  int64_t inputs_outputs = 0;
  int64_t variables = 0;
  int64_t structures = 0;
  int64_t total() const { return packed_weights + arena + inputs_outputs + variables + structures; }
};

class Runner final : public ops::Host, public ops::Callee {
 public:
  /// A callee keeps inputs and outputs inside its arena; the main runner gives each memory of its own.
  Runner(Session& session, int subgraph, bool callee);
  ~Runner() override;

  /// Plans for these input shapes, giving back all memory first. `bytes` are the sizes of string inputs.
  void start(std::span<const Shape> inputs, std::span<const int64_t> bytes);
  /// Plans as `other` did.
  void start_like(const Runner& other) { start(other.planned_shapes_, other.planned_bytes_); }
  /// After start_like(): takes memory and state of `other`, which is of no use then, and what else allocate() would.
  void take_over(Runner& other);
  /// Needs of allocate(). Valid after start().
  MemoryNeeds needs() const;
  /// Takes the planned memory and packs weights, callees included.
  void allocate();
  bool allocated() const { return allocated_; }
  /// Gives back everything that allocate() and runs took.
  void release();
  /// Runs the main subgraph once. Inputs were written to their memory before.
  void invoke();

  const plan::SubgraphPlan& plan() const { return plan_; }
  /// What keeps the memory of an input, output, variable or preserved value; nullopt when it has none (yet).
  std::optional<std::shared_ptr<const void>> memory_of(int value) const;
  /// Throws when `memory` cannot stand for `value`: another size or shape, or read-only where it would be written.
  void check_caller_memory(int value, const CallerMemory& memory) const;
  /// The same for all of Session::caller_memory, and that nothing written overlaps another tensor.
  void check_caller_memory() const;
  /// An input, output or variable has neither memory of the caller nor its own.
  bool lacks_memory() const;
  /// After allocate() and a change of Session::caller_memory: takes and gives back memory, and uses what is there now.
  void rebind();
  /// Gives a string input memory of this size.
  void resize_string_input(int value, int64_t bytes);
  void reset_variables();

  // ops::Host
  ops::Callee& callee(int node_index, int subgraph) override;
  const ir::Subgraph& subgraph(int index) const override {
    return session_.graph->subgraphs[static_cast<size_t>(index)];
  }
  ops::Resources& resources() override { return *session_.resources; }
  void checkpoint() override;
  const ops::OpDef* find(const ir::Node& node) const override;
  ops::UserNode& user_node(int node_index) override;
  std::shared_ptr<const void> hold_memory(bool leave) override;

  // ops::Callee
  bool plan(std::span<const Shape> inputs) override;
  int output_count() const override { return static_cast<int>(plan_.subgraph().outputs.size()); }
  const Shape& output_shape(int i) const override;
  int64_t workspace_bytes() const override;
  std::span<const TensorView> run(std::span<const TensorView> inputs, std::byte* workspace) override;
  std::span<const TensorView> results() const override { return results_; }
  void forget_results() override { results_.clear(); }
  int input_count() const override { return static_cast<int>(plan_.subgraph().inputs.size()); }
  DType input_type(int i) const override;
  DType output_type(int i) const override;

 private:
  /// A step with everything it needs at hand.
  struct BoundStep {
    std::vector<TensorView> inputs;
    std::vector<TensorView> outputs;
    std::byte* scratch = nullptr;
    const std::byte* packed = nullptr;
    std::byte* persistent = nullptr;
  };
  struct BoundSegment {
    std::shared_ptr<Buffer> arena;  // null: in the caller's workspace, or given back
    std::vector<BoundStep> steps;
  };

  void move_state(Runner& other);
  void mark_initialized(const Runner& other);
  PackedKey packed_key(const plan::Step& step) const;
  void clear_variable(int value);
  void take_arena(size_t segment);
  void give_back(std::shared_ptr<Buffer>& memory, MemoryCategory category);
  std::shared_ptr<Buffer> take(int64_t bytes, MemoryCategory category);
  const CallerMemory* caller_memory(int value) const;
  void give_memory(int value);
  void give_own_memory(int value, std::map<int, std::shared_ptr<Buffer>>& memories, MemoryCategory category);
  void require_fit(int value, const CallerMemory& memory) const;
  bool needs_own_memory(int value) const;
  bool is_written(int value) const;
  void copy_constant_outputs();
  void take_outputs();
  void acquire_packed(size_t segment);
  void take_persistent(size_t segment);
  void collect_memory(std::vector<std::shared_ptr<const void>>& memory) const;
  void bind(size_t segment, std::byte* arena);
  void follow_roots();
  TensorView view(int value) const;
  void take_memory(size_t segment);
  void run_segments();
  void run_segment(size_t segment);
  void run_step(const plan::Step& step, BoundStep& bound);
  void notify(const plan::Step& step, const BoundStep& bound, bool before);
  void release_finished_segments();
  void release_later_segments();
  void sync_folded();
  void copy_outputs();

  Session& session_;
  const bool callee_;
  const Runner* caller_ = nullptr;                            // of a callee
  std::map<int, std::unique_ptr<ops::UserNode>> user_nodes_;  // by node
  plan::SubgraphPlan plan_;
  std::vector<BoundSegment> bound_;
  std::map<int, std::shared_ptr<Buffer>> io_;          // main: memory of inputs and outputs by value
  std::map<int, std::shared_ptr<Buffer>> variables_;   // by value
  std::map<int, std::shared_ptr<Buffer>> persistent_;  // by node
  std::map<PackedKey, std::shared_ptr<const Buffer>> packed_;
  std::map<std::pair<int, int>, std::unique_ptr<Runner>> callees_;
  std::vector<Shape> planned_shapes_;
  std::vector<int64_t> planned_bytes_;
  std::optional<std::byte*> bound_base_;  // callee: arena that segment 0 is bound to (null when it has no bytes)
  std::vector<TensorView> results_;
  int64_t folded_entered_ = 0;
  int64_t structures_charged_ = 0;
  bool started_ = false;
  bool allocated_ = false;
  bool initialized_ = false;  // variables have their first state
};

}  // namespace leadline::runtime
