// SPDX-License-Identifier: Apache-2.0
// Runs one subgraph by its plan: the main one for an executable, others for the nodes that call them (callee.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ir/changed_nodes.h"
#include "plan/planner.h"
#include "runtime/bindings.h"
#include "runtime/caller_memory.h"
#include "runtime/environment.h"
#include "runtime/memory_blocks.h"
#include "runtime/node_host.h"

namespace leadline::runtime {

/// What a runner and its callees still have to take from the budget before they can run.
struct MemoryNeeds {
  int64_t packed_weights = 0;  // not packed by anyone yet
  int64_t shared_weights = 0;  // packed already, by another executable of the model
  int64_t arena = 0;
  int64_t inputs_outputs = 0;
  int64_t variables = 0;
  int64_t structures = 0;
  int64_t total() const { return packed_weights + arena + inputs_outputs + variables + structures; }
};

class Runner {
 public:
  /// For the main subgraph, whose inputs and outputs have memory of their own, or uses `caller_memory`, which changes
  /// between runs. `changed` is what passes made of some nodes; null: the graph runs as it is.
  Runner(Environment& environment, int subgraph, std::shared_ptr<const ir::ChangedNodes> changed,
         const CallerMemories& caller_memory);
  /// For a subgraph that a node of `caller` calls, which keeps inputs and outputs inside its arena.
  Runner(Environment& environment, int subgraph, std::shared_ptr<const ir::ChangedNodes> changed,
         const NodeHost& caller);
  ~Runner();

  const plan::SubgraphPlan& plan() const { return planner_.plan(); }
  const plan::Planner& planner() const { return planner_; }
  const plan::Outline& outline() const { return planner_.outline(); }
  const std::shared_ptr<const ir::ChangedNodes>& changed() const { return changed_; }
  Bindings& bindings() { return bindings_; }
  const Bindings& bindings() const { return bindings_; }
  const MemoryBlocks& blocks() const { return blocks_; }

  /// Plans for these input shapes, releasing all memory first. `bytes` are the sizes of string inputs.
  void start(std::span<const Shape> inputs, std::span<const int64_t> bytes);
  /// Plans as `other` did.
  void start_like(const Runner& other) { start(other.planned_shapes_, other.planned_bytes_); }
  /// The plan is for these shapes (and sizes of string inputs).
  bool is_planned_for(std::span<const Shape> inputs) const;
  bool is_planned_for(std::span<const Shape> inputs, std::span<const int64_t> bytes) const;

  /// Needs of allocate(). Valid after start().
  MemoryNeeds needs() const;
  /// Takes the planned memory and packs weights, callees included. Does nothing when that was done.
  void allocate();
  /// Releases everything that allocate() and runs took.
  void release();
  /// A later resume() would find what start() makes: nothing of the plan depends on data or state.
  bool can_be_resumed() const;
  /// Releases all memory and takes the plan out of the ledger. Returns the bytes that folded results still hold.
  int64_t suspend();
  /// After suspend(): as after start() with the same inputs.
  void resume();
  /// Adds the packed weights that it uses, which stay packed for as long as someone holds them.
  void collect_packed(std::vector<std::shared_ptr<const Buffer>>& packed) const;
  /// After start_like(): takes memory and state of `other`, which is of no use then, and what else allocate() would.
  void take_over(Runner& other);
  /// Adds all memory that kernels may see.
  void collect_memory(std::vector<std::shared_ptr<const void>>& memory) const;
  void reset_variables();

  // The main subgraph.

  /// Runs once. Inputs were written to their memory before.
  void invoke();
  /// After allocate() and a change of the caller's memory: takes and releases memory, and uses what is there now.
  void rebind() { bindings_.rebind(); }
  /// What keeps the memory of an input, output, variable or preserved value; nullopt when it has none (yet).
  std::optional<std::shared_ptr<const void>> memory_of(int value) const;
  /// Takes memory of this size for a string input.
  void resize_string_input(int value, int64_t bytes);

  // A subgraph that is called: begin_call(), copy the inputs, run_segments(), read the outputs.

  /// Binds the first segment to `workspace`, or to memory of its own where there is none.
  void begin_call(std::byte* workspace);
  void run_segments();
  /// Releases what the calls of the caller's run took beyond the plan.
  void end_calls();
  /// The arenas from this segment on, to be returned to the accounts.
  std::vector<std::shared_ptr<Buffer>> detach_arenas(size_t first);
  /// The arena of the last segment.
  std::byte* last_arena() const;

 private:
  enum class Stage { kNew, kPlanned, kAllocated };

  Runner(Environment& environment, int subgraph, std::shared_ptr<const ir::ChangedNodes> changed,
         const CallerMemories* caller_memory, const NodeHost* caller);
  bool is_main() const { return caller_memory_ != nullptr; }
  void sync_folded();
  PackedKey packed_key(const plan::Step& step) const;
  void provide_outputs();
  void take_arena(size_t segment);
  void acquire_packed(size_t segment);
  void take_persistent(size_t segment);
  void allocate_callees();
  void take_memory(size_t segment);
  void begin_run();
  void run_segment(size_t segment);
  void run_step(const plan::Step& step, const BoundStep& bound);
  void run_kernel(const plan::Step& step, ops::RunContext& context);
  void release_finished_segments();
  void release_later_segments();
  void copy_constant_outputs();
  void take_state(Runner& other);
  void mark_initialized(const Runner& other);

  Environment& environment_;
  const CallerMemories* const caller_memory_;  // null: a callee
  const std::shared_ptr<const ir::ChangedNodes> changed_;
  NodeHost host_;
  plan::Planner planner_;
  MemoryBlocks blocks_;
  Bindings bindings_;
  std::vector<Shape> planned_shapes_;
  std::vector<int64_t> planned_bytes_;
  int64_t folded_entered_ = 0;  // in the ledger, for results folded while planning
  int64_t structures_charged_ = 0;
  Stage stage_ = Stage::kNew;
  bool initialized_ = false;  // variables have their first state
};

}  // namespace leadline::runtime
