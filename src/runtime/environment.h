// SPDX-License-Identifier: Apache-2.0
// What all runners of one executable share.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/thread_pool.h"
#include "ir/graph.h"
#include "leadline/observer.h"
#include "ops/resources.h"
#include "ops/user_ops.h"
#include "runtime/accounts.h"
#include "runtime/packed_weights.h"
#include "runtime/profile.h"

namespace leadline::runtime {

struct RunSettings {
  int threads = 1;
  bool plan_missing = false;  // ops that cannot run are planned by the file's shapes
  bool preserve_all = false;
  bool owns_resources = true;  // false: another executable is charged for the named variables
  bool winograd = true;        // as in InterpreterOptions
  bool share_parts = true;     // as in plan::PlanOptions
};

/// What a run may still do, and what has to be done afterwards.
class RunControl {
 public:
  /// The run that begins may take this many rounds of loops.
  void begin(int64_t rounds) { rounds_left_ = rounds; }
  /// Throws Error(kCancelled) when they are used up.
  void take_round() {
    require(rounds_left_-- > 0, ErrorCode::kCancelled,
            "the model's loops ran more rounds than allowed (max_loop_rounds)");
  }
  /// An op of a user keeps views: the executable must take other memory before its next run.
  void leave_memory() { leave_memory_ = true; }
  /// Whether that was said; from now on it was not.
  bool take_leave() { return std::exchange(leave_memory_, false); }

 private:
  int64_t rounds_left_ = 0;
  bool leave_memory_ = false;
};

/// Fixed surroundings of a run, and its books. Not thread-safe.
struct Environment {
  Environment(std::shared_ptr<const ir::Graph> source, std::shared_ptr<PackedWeightsCache> weights,
              std::shared_ptr<Budget> budget, std::shared_ptr<ops::Resources> state, ops::UserOpTable registered,
              const RunSettings& chosen)
      : graph(std::move(source)),
        packed_weights(std::move(weights)),
        resources(std::move(state)),
        user_ops(std::move(registered)),
        settings(chosen),
        pool(chosen.threads),
        accounts(std::move(budget)) {}

  const std::shared_ptr<const ir::Graph> graph;
  const std::shared_ptr<PackedWeightsCache> packed_weights;
  const std::shared_ptr<ops::Resources> resources;
  const ops::UserOpTable user_ops;  // what users had registered when the executable was made
  const RunSettings settings;
  ThreadPool pool;
  Accounts accounts;
  RunControl control;
  std::vector<Observer*> observers;
  Profile profile;
};

}  // namespace leadline::runtime
