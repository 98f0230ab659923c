// SPDX-License-Identifier: Apache-2.0
// What a job is charged to: a count of its own under the caller's budget, in which the models it was given take part.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "leadline/budget.h"
#include "leadline/job_plan.h"
#include "leadline/model.h"

namespace leadline::jobs {

/// Of sizes in the texts of a job's plan. `given` null: those of the model's budget.
ByteUnits units_of(const std::shared_ptr<Budget>& given, const Model& model);

class JobBudget {
 public:
  /// `given` null: that of the first model.
  JobBudget(const std::shared_ptr<Budget>& given, std::vector<Model> models);

  /// What the job is charged to.
  const std::shared_ptr<Budget>& own() const { return own_; }
  /// Throws BudgetError with the table of phases when the plan does not fit what the caller's budget has left. Models
  /// that are charged to that budget already are not asked for again.
  void admit(const JobPlan& plan) const;
  /// The same in the middle of a job, for a plan of all of it: what the job holds is not asked for again.
  void admit_again(const JobPlan& plan) const;
  /// Counts what was charged to the given models since, such as packed weights. To be called at each high point.
  void count_models();
  /// Bytes that someone else is charged for and the job uses, until they are taken back.
  void count_shared(int64_t bytes, MemoryCategory category) {
    own_->count_shared(bytes, category);
    shared_ += bytes;
  }
  /// The most that was counted at one time, given models included.
  int64_t peak() const { return own_->peak(); }

 private:
  void admit(const JobPlan& plan, int64_t held) const;

  std::shared_ptr<Budget> given_;
  std::shared_ptr<Budget> own_;
  std::vector<Model> models_;
  int64_t base_ = 0;    // charged to the models when the job began
  int64_t shared_ = 0;  // counted here and charged elsewhere
  int64_t added_ = 0;   // and since then, as counted
};

}  // namespace leadline::jobs
