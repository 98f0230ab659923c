// SPDX-License-Identifier: Apache-2.0
// What a run takes in all, from what is planned and what was taken already, and the refusal of what does not fit.
#pragma once

#include <cstdint>

#include "leadline/budget.h"
#include "leadline/plan.h"
#include "plan/describe.h"
#include "runtime/ledger.h"
#include "runtime/loaded_model.h"
#include "runtime/runner.h"

namespace leadline::runtime {

/// Bytes of each phase. `structure_bytes` are those of the graph's structures that the runner uses.
plan::PlannedTotals planned_totals(const LoadedModel& model, const Runner& runner, const Ledger& ledger,
                                   int64_t structure_bytes);

/// Throws BudgetError with a table of `plan`: `needs` are more than the `available` bytes of `budget`.
[[noreturn]] void refuse(const Plan& plan, const MemoryNeeds& needs, const Budget& budget, int64_t available);

}  // namespace leadline::runtime
