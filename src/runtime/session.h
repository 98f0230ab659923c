// SPDX-License-Identifier: Apache-2.0
// What all runners of one interpreter share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/thread_pool.h"
#include "ir/changed_nodes.h"
#include "ir/graph.h"
#include "leadline/observer.h"
#include "ops/resources.h"
#include "ops/user_ops.h"
#include "runtime/ledger.h"
#include "runtime/packed_weights.h"

namespace leadline::runtime {

/// Memory of the caller that stands for an input, output or variable.
struct CallerMemory {
  std::shared_ptr<const void> owner;  // null: the caller keeps the memory
  std::byte* data = nullptr;
  int64_t bytes = 0;
  Shape shape;
  bool read_only = false;
};

/// Fixed surroundings of a run plus its bookkeeping. Not thread-safe.
class Session {
 public:
  Session(std::shared_ptr<const ir::Graph> source, std::shared_ptr<PackedWeights> weights,
          std::shared_ptr<Budget> charged, std::shared_ptr<ops::Resources> state, int threads)
      : graph(std::move(source)),
        packed_weights(std::move(weights)),
        budget(std::move(charged)),
        resources(std::move(state)),
        pool(threads) {}

  const std::shared_ptr<const ir::Graph> graph;
  const std::shared_ptr<PackedWeights> packed_weights;
  const std::shared_ptr<Budget> budget;
  const std::shared_ptr<ops::Resources> resources;
  ThreadPool pool;
  Ledger ledger;
  /// What users had registered when the interpreter was made.
  ops::UserOpTable user_ops;
  /// By value of the main subgraph. Neither charged nor entered in the ledger.
  std::map<int, CallerMemory> caller_memory;
  bool plan_missing = false;  // ops that cannot run are planned by the file's shapes
  bool leave_memory = false;  // an op of a user kept a view: take other memory from the next call on
  bool preserve_all = false;
  bool owns_resources = true;  // false: another interpreter is charged for the named variables
  bool winograd = true;        // as in InterpreterOptions
  bool share_parts = true;     // as PlanOptions::views
  /// What passes made of some nodes; null: the graph runs as it is. Runners made before a change must go with it.
  std::shared_ptr<const ir::ChangedNodes> changed;
  int64_t rounds_left = 0;
  std::vector<Observer*> observers;
  /// Time per node, [subgraph][node]; empty while profiling is off.
  std::vector<std::vector<NodeProfile>> profile;
};

}  // namespace leadline::runtime
