// SPDX-License-Identifier: Apache-2.0
// The values that the layout of one segment reads or changes. Tables of a layout have a row for each of these and not
// for each value of the subgraph: a subgraph that is planned in many segments would pay for all values in each.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/outline.h"
#include "plan/subgraph_plan.h"

namespace leadline::plan {

class SegmentValues {
 public:
  /// For `segment`, which comes after those of `plan`: all values for the first one; for later ones inputs and outputs
  /// of their steps, and the values in whose memory these lie.
  SegmentValues(const Outline& outline, const SubgraphPlan& plan, const Segment& segment);

  size_t size() const { return size_; }
  bool contains(int value) const;
  /// The row of `value`, which is one of these.
  size_t row(int value) const;
  /// The value of a row.
  int value(size_t row) const { return all_ ? static_cast<int>(row) : values_[row]; }

 private:
  bool all_;
  size_t size_;
  std::vector<int> values_;  // sorted; empty: all
};

}  // namespace leadline::plan
