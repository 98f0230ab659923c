// SPDX-License-Identifier: Apache-2.0
// SubgraphPlan -> the public Plan.
#pragma once

#include <array>

#include "leadline/plan.h"
#include "plan/outline.h"
#include "plan/subgraph_plan.h"

namespace leadline::plan {

/// Bytes per category: what loading took, and the whole job at its highest.
struct PlannedTotals {
  std::array<int64_t, kMemoryCategoryCount> load{};
  std::array<int64_t, kMemoryCategoryCount> prepare{};
  std::array<int64_t, kMemoryCategoryCount> peak{};
};

/// Copies the plan into plain data. `threads` is what the run will use.
Plan describe(const Outline& outline, const SubgraphPlan& plan, const PlannedTotals& totals, int threads);

}  // namespace leadline::plan
