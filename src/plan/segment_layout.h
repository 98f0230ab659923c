// SPDX-License-Identifier: Apache-2.0
// Decides for one segment which tensors share memory, how long each piece lives, and where it lies.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/outline.h"
#include "plan/subgraph_plan.h"

namespace leadline::plan {

/// What becomes of a plan by its next segment.
struct SegmentLayout {
  struct StepMemory {
    int64_t scratch_offset = 0;
    int64_t live_bytes = 0;
  };

  std::vector<int> changed;          // values that the segment reads or makes
  std::vector<PlannedValue> values;  // what becomes of these
  std::vector<OutputCopy> output_copies;
  std::vector<StepMemory> steps;
  int64_t arena_bytes = 0;
  int64_t tensor_bytes = 0;
  int64_t lower_bound = 0;
  int last_use_node = -1;

  /// Appends the segment, which is the one that was laid out, and writes down what becomes of the values.
  void append_to(SubgraphPlan& plan, Segment segment);
};

/// The layout of `segment`, which comes after those of `plan`; the nodes of its steps, and the shapes of their outputs,
/// are planned already. Steps:
///  1. every output of every step gets a storage; a view takes its input's memory, an in-place op may take the memory
///     of an input that nothing reads afterwards, a part of a tensor may lie in it;
///  2. each piece of arena memory gets an interval from the step that first writes to the last that reads;
///  3. scratch is a piece that lives for one step;
///  4. place() finds offsets.
SegmentLayout lay_out(const Outline& outline, const PlanOptions& options, const SubgraphPlan& plan,
                      const Segment& segment);

}  // namespace leadline::plan
