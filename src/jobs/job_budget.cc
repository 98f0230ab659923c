// SPDX-License-Identifier: Apache-2.0
#include "jobs/job_budget.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "jobs/phase_memory.h"

namespace leadline::jobs {

JobBudget::JobBudget(const std::shared_ptr<Budget>& given, std::vector<Model> models)
    : given_(given ? given : models.front().budget()), own_(given_->child()), models_(std::move(models)) {
  for (const Model& model : models_) {
    base_ += model.memory_bytes();
    count_shared(PhaseMemory::of(model).total(), MemoryCategory::kModelFile);
  }
}

ByteUnits units_of(const std::shared_ptr<Budget>& given, const Model& model) {
  return (given ? given : model.budget())->units();
}

void JobBudget::admit(const JobPlan& plan) const { admit(plan, 0); }

void JobBudget::admit_again(const JobPlan& plan) const { admit(plan, std::max<int64_t>(own_->used() - shared_, 0)); }

void JobBudget::admit(const JobPlan& plan, int64_t held) const {
  int64_t charged = 0;
  for (const Model& model : models_) charged += model.budget() == given_ ? PhaseMemory::of(model).total() : 0;
  const int64_t available = given_->available() + held;
  if (plan.peak_bytes - charged <= available) return;
  throw BudgetError(
      fmt::format("{} needs {} ({} bytes), the budget is {}; {} of it are left{}.\n{}Raise the budget or use fewer "
                  "threads.",
                  plan.job, given_->format(plan.peak_bytes), plan.peak_bytes, given_->format(given_->limit()),
                  given_->format(available), charged > 0 ? " besides the model" : "", plan.to_text()),
      plan.peak_bytes, given_->limit());
}

void JobBudget::count_models() {
  int64_t added = -base_;
  for (const Model& model : models_) added += model.memory_bytes();
  count_shared(added - added_, MemoryCategory::kPackedWeights);
  added_ = added;
}

}  // namespace leadline::jobs
