// SPDX-License-Identifier: Apache-2.0
#include "plan/segment_values.h"

#include <algorithm>

namespace leadline::plan {

SegmentValues::SegmentValues(const Outline& outline, const SubgraphPlan& plan, const Segment& segment)
    : all_(plan.segments.empty()), size_(plan.values.size()) {
  if (all_) return;
  for (const Step& step : segment.steps) {
    const ir::Node& node = outline.node(step.node);
    for (int v : node.inputs) {
      if (v != ir::kAbsent) values_.insert(values_.end(), {v, plan.value(v).root});
    }
    for (int v : node.outputs) values_.insert(values_.end(), {v, plan.value(v).root});
  }
  std::sort(values_.begin(), values_.end());
  values_.erase(std::unique(values_.begin(), values_.end()), values_.end());
  size_ = values_.size();
}

bool SegmentValues::contains(int value) const {
  return all_ || std::binary_search(values_.begin(), values_.end(), value);
}

size_t SegmentValues::row(int value) const {
  if (all_) return static_cast<size_t>(value);
  return static_cast<size_t>(std::lower_bound(values_.begin(), values_.end(), value) - values_.begin());
}

}  // namespace leadline::plan
