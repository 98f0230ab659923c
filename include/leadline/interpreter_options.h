// SPDX-License-Identifier: Apache-2.0
// How an Interpreter runs a model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "leadline/budget.h"
#include "leadline/devices.h"

namespace leadline {

class Interpreter;

struct InterpreterOptions {
  /// Threads for one invoke(); -1: as many as CPUs are usable. Anything else below 1 is an error.
  int num_threads = 1;
  /// What the run may take; null: the model's budget.
  std::shared_ptr<Budget> budget;
  /// Which subgraph to run.
  int subgraph = 0;
  /// Run the subgraph of this signature (Model::signatures); empty: `subgraph`. Unknown keys are
  /// Error(kInvalidArgument).
  std::string signature;
  /// Every intermediate tensor keeps memory of its own, so that it can be read after a run.
  bool preserve_all_tensors = false;
  /// Only plan: outputs of ops that cannot run are planned with their shapes in the file, and Plan::missing_ops
  /// names those ops. Calls that need memory throw.
  bool plan_only = false;
  /// Float 3x3 convolutions may use Winograd's method where it is faster, up to three times. It rounds elsewhere than
  /// plain sums do, by less than 1e-5 of an output's range. Integer results never depend on this.
  bool winograd = true;
  /// Keep plans of recent input shapes (Interpreter::resize_input), charged beside the run.
  bool keep_plans = true;
  /// Passes over the graph that are not made, by name (passes.h), or "all". Passes merge nodes into faster ones;
  /// integer results stay the same, float results up to rounding. Tensors between merged nodes do not exist then.
  /// Interpreters with preserve_all_tensors or observers run the graph as it is in the file. Unknown names are
  /// Error(kInvalidArgument).
  std::vector<std::string> disabled_passes;
  /// Named variables (VAR_HANDLE) are shared with this interpreter of the same model; null: a state of its own.
  /// Interpreters that share state must not run at the same time.
  const Interpreter* shares_state_with = nullptr;
  /// Stops loops of a model that never end: rounds of WHILE in one invoke().
  int64_t max_loop_rounds = 100'000'000;
  /// Where to run: a name like "/CPU:0" or "/GPU:1" (devices.h); empty: "/CPU:0".
  std::string device;
  /// What to do when that device does not exist or has no kernels yet.
  MissingDevice on_missing = MissingDevice::kError;
};

}  // namespace leadline
