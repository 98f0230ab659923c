// SPDX-License-Identifier: Apache-2.0
// Questions that every report asks a Plan: which step is the highest, and what is alive then.
#pragma once

#include <vector>

#include "leadline/plan.h"

namespace leadline::report {

/// The step with the most live arena bytes, the first of several; -1 when there is no step.
int peak_step(const Plan& plan);

/// The pieces of arena memory alive at `step`, largest first. Tensors that share memory are one piece, shown as the
/// tensor that owns it where that one is alive. Pointers into plan.tensors.
std::vector<const PlannedTensor*> live_tensors(const Plan& plan, int step);

/// "12.5 %"; "-" when `whole` is not positive.
std::string percent(int64_t part, int64_t whole);

}  // namespace leadline::report
