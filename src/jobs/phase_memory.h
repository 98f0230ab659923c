// SPDX-License-Identifier: Apache-2.0
// The sums that job plans are made of.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leadline/budget.h"
#include "leadline/interpreter.h"
#include "leadline/job_plan.h"
#include "leadline/model.h"

namespace leadline::jobs {

/// Bytes by category.
class PhaseMemory {
 public:
  /// What a model takes before anything runs it: its file and its graph.
  static PhaseMemory of(const Model& model);
  static PhaseMemory of(std::span<const CategoryBytes> categories);

  PhaseMemory& add(MemoryCategory category, int64_t bytes);
  int64_t total() const;
  friend PhaseMemory operator+(PhaseMemory a, const PhaseMemory& b);
  friend PhaseMemory operator-(PhaseMemory a, const PhaseMemory& b);

  JobPhase phase(std::string name, std::string detail) const;

 private:
  std::array<int64_t, kMemoryCategoryCount> bytes_{};
};

/// The plan of a run; nothing: the model leaves sizes open that the first sample says, and cannot be planned before.
std::optional<Plan> plan_if_sized(const Interpreter& interpreter);

/// What running takes besides the model, as far as it is known.
struct RunMemory {
  PhaseMemory bytes;
  bool complete = false;  ///< that is all
};
RunMemory run_memory(const Interpreter& interpreter);

/// The same with what samples hold from the first one on: in every phase after those that only load and prepare.
JobPlan with_samples(JobPlan plan, int64_t bytes);

/// A plan of these phases; its peak is the largest of them.
JobPlan make_plan(std::string job, std::vector<JobPhase> phases, int64_t result_bytes, bool complete, ByteUnits units);

}  // namespace leadline::jobs
