// SPDX-License-Identifier: Apache-2.0
// Which values of a segment are computed inside the tensor that is joined from them.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/outline.h"
#include "plan/segment_values.h"
#include "plan/subgraph_plan.h"

namespace leadline::plan {

/// A place inside another value.
struct Slot {
  int outer = -1;  // -1: none
  int64_t offset = 0;
};

/// A value gets a slot in the output of CONCATENATION, PACK and the like when it is computed in the same segment and is
/// not an input, output, constant or variable. What it is computed from in place, or is a view of, gets the same
/// slot. A slot belongs to one value and those: a value that is joined twice is copied the second time.
class PartSlots {
 public:
  /// Refers to all of these. Of `plan` only sizes, shapes and which values are variables are read.
  PartSlots(const Outline& outline, const SubgraphPlan& plan, const Segment& segment, const SegmentValues& rows);

  /// Assigns slots to the inputs of the steps for which use[position] is true.
  void assign(const std::vector<bool>& use);
  /// Where `value` lies in the outermost value that has it; outer -1: nowhere.
  Slot resolve(int value) const;

 private:
  bool give(int value, Slot slot, bool overwritten);
  bool may_move(int value, bool overwritten) const;
  const PlannedValue& value(int index) const { return plan_.value(index); }
  Slot& slot(int value) { return slots_[rows_.row(value)]; }
  const Slot& slot(int value) const { return slots_[rows_.row(value)]; }
  int node_at(int position) const { return segment_.steps[static_cast<size_t>(position)].node; }
  bool is_cut(int position, int value) const;

  const Outline& outline_;
  const SubgraphPlan& plan_;
  const Segment& segment_;
  const SegmentValues& rows_;
  std::vector<int> maker_;   // by row: the position that computes the value, -1: none of this segment
  std::vector<Slot> slots_;  // by row
};

}  // namespace leadline::plan
