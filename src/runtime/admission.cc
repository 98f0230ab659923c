// SPDX-License-Identifier: Apache-2.0
#include "runtime/admission.h"

#include <string>

#include "core/error.h"

namespace leadline::runtime {
namespace {

size_t slot(MemoryCategory category) { return static_cast<size_t>(category); }

}  // namespace

plan::PlannedTotals planned_totals(const LoadedModel& model, const Runner& runner, const Ledger& ledger,
                                   int64_t structure_bytes) {
  plan::PlannedTotals totals;
  totals.load[slot(MemoryCategory::kModelFile)] = model.file_bytes();
  totals.load[slot(MemoryCategory::kGraph)] = structure_bytes;
  const MemoryNeeds needs = runner.needs();
  const int64_t planned = ledger.total() + needs.total() + needs.shared_weights;
  const bool at_peak = ledger.peak() >= planned;
  for (int c = 0; c < kMemoryCategoryCount; ++c) {
    const auto category = static_cast<MemoryCategory>(c);
    totals.peak[slot(category)] = at_peak ? ledger.at_peak(category) : ledger.now(category);
  }
  if (!at_peak) {
    totals.peak[slot(MemoryCategory::kPackedWeights)] += needs.packed_weights + needs.shared_weights;
    totals.peak[slot(MemoryCategory::kArena)] += needs.arena;
    totals.peak[slot(MemoryCategory::kInputsOutputs)] += needs.inputs_outputs;
    totals.peak[slot(MemoryCategory::kVariables)] += needs.variables;
    totals.peak[slot(MemoryCategory::kGraph)] += needs.structures;
  }
  totals.prepare = totals.load;
  totals.prepare[slot(MemoryCategory::kGraph)] = totals.peak[slot(MemoryCategory::kGraph)];
  totals.prepare[slot(MemoryCategory::kPackedWeights)] = totals.peak[slot(MemoryCategory::kPackedWeights)];
  // The part of the arena above its highest tensor exists for scratch alone.
  const plan::Segment& first = runner.plan().segments[0];
  const int64_t scratch = first.arena_bytes - first.tensor_bytes;
  totals.peak[slot(MemoryCategory::kScratch)] = scratch;
  totals.peak[slot(MemoryCategory::kArena)] -= scratch;
  return totals;
}

void refuse(const Plan& plan, const MemoryNeeds& needs, const Budget& budget, int64_t available) {
  std::string table;
  for (const CategoryBytes& c : plan.categories) {
    table += fmt::format("\n  {:<16} {:>14} bytes  {:>10}", memory_category_name(c.category), c.bytes,
                         budget.format(c.bytes));
  }
  throw BudgetError(fmt::format("this model needs {} ({} bytes), the budget is {}; {} more are needed now and {} are "
                                "left. What needs it:{}\nRaise the budget, use a smaller input or fewer threads.",
                                budget.format(plan.peak_bytes), plan.peak_bytes, budget.format(budget.limit()),
                                budget.format(needs.total()), budget.format(available), table),
                    plan.peak_bytes, budget.limit());
}

}  // namespace leadline::runtime
