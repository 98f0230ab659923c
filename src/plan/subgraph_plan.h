// SPDX-License-Identifier: Apache-2.0
// The plan of one subgraph as the engine uses it: shapes, kernels, and where every tensor lives. Data: a Planner makes
// it, runtime runs it.
//
// Nodes are planned in file order, in segments. A segment ends before the first node whose output shapes need data that
// only a run can give. Every segment has an arena of its own. A subgraph without data-dependent shapes has one segment
// and a complete plan before it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "leadline/plan.h"
#include "ops/op.h"

namespace leadline::plan {

/// One tensor.
struct PlannedValue {
  Shape shape;
  int64_t bytes = 0;
  Storage storage = Storage::kUnplanned;
  bool shape_known = false;
  int segment = -1;     // arena values
  int64_t offset = -1;  // in that arena
  int64_t shift = 0;    // where in the memory of `root` this one begins
  int root = -1;        // value whose memory this one uses; itself when it has memory of its own
  int first_step = -1;  // in the whole subgraph; -1: from the start
  int last_step = -1;

  /// Its contents do not change: they are in the file, or were computed while planning.
  bool is_fixed() const { return storage == Storage::kConstant || storage == Storage::kFolded; }
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
  bool initializer = false;  // sets variables to their first state from constants: runs once
};

struct Segment {
  std::vector<Step> steps;
  std::vector<int> values;   // that got their place with a later segment; empty for the first, which places all others
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
  bool winograd = true;     // as in InterpreterOptions
  bool share_parts = true;  // tensors may live inside others that are made of them, or that they are cut from
};

struct SubgraphPlan {
  std::vector<PlannedValue> values;
  std::vector<Segment> segments;
  std::vector<OutputCopy> output_copies;
  int next_node = 0;  // the first that is not planned yet
  bool complete = false;

  const PlannedValue& value(int index) const { return values[static_cast<size_t>(index)]; }
  PlannedValue& value(int index) { return values[static_cast<size_t>(index)]; }
};

}  // namespace leadline::plan
