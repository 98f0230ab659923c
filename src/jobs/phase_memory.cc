// SPDX-License-Identifier: Apache-2.0
#include "jobs/phase_memory.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/loaded_model.h"

namespace leadline::jobs {

PhaseMemory PhaseMemory::of(const Model& model) {
  return PhaseMemory()
      .add(MemoryCategory::kModelFile, model.loaded()->file_bytes())
      .add(MemoryCategory::kGraph, model.loaded()->graph_bytes());
}

PhaseMemory PhaseMemory::of(std::span<const CategoryBytes> categories) {
  PhaseMemory memory;
  for (const CategoryBytes& c : categories) memory.add(c.category, c.bytes);
  return memory;
}

std::optional<Plan> plan_if_sized(const Interpreter& interpreter) try {
  return interpreter.plan();
} catch (const Error& error) {
  if (error.code() != ErrorCode::kInvalidArgument || interpreter.unsized_inputs().empty()) throw;
  return std::nullopt;
}

RunMemory run_memory(const Interpreter& interpreter) {
  const std::optional<Plan> plan = plan_if_sized(interpreter);
  if (!plan) return {};
  return {PhaseMemory::of(plan->categories) - PhaseMemory::of(interpreter.model()), plan->complete};
}

PhaseMemory& PhaseMemory::add(MemoryCategory category, int64_t bytes) {
  bytes_[static_cast<size_t>(category)] += bytes;
  return *this;
}

int64_t PhaseMemory::total() const { return std::accumulate(bytes_.begin(), bytes_.end(), int64_t{0}); }

PhaseMemory operator+(PhaseMemory a, const PhaseMemory& b) {
  for (size_t i = 0; i < a.bytes_.size(); ++i) a.bytes_[i] += b.bytes_[i];
  return a;
}

PhaseMemory operator-(PhaseMemory a, const PhaseMemory& b) {
  for (size_t i = 0; i < a.bytes_.size(); ++i) a.bytes_[i] -= b.bytes_[i];
  return a;
}

JobPhase PhaseMemory::phase(std::string name, std::string detail) const {
  JobPhase phase;
  phase.name = std::move(name);
  phase.detail = std::move(detail);
  phase.peak_bytes = total();
  for (size_t i = 0; i < bytes_.size(); ++i) {
    if (bytes_[i] > 0) phase.categories.push_back({static_cast<MemoryCategory>(i), bytes_[i]});
  }
  return phase;
}

JobPlan with_samples(JobPlan plan, int64_t bytes) {
  std::vector<JobPhase> phases;
  for (const JobPhase& phase : plan.phases) {
    const bool reads = phase.name != "load" && phase.name != "equalize";
    PhaseMemory memory = PhaseMemory::of(phase.categories);
    memory.add(MemoryCategory::kInputsOutputs, reads ? bytes : 0);
    phases.push_back(memory.phase(phase.name, phase.detail));
  }
  return make_plan(plan.job, std::move(phases), plan.result_bytes, plan.complete, plan.units);
}

JobPlan make_plan(std::string job, std::vector<JobPhase> phases, int64_t result_bytes, bool complete, ByteUnits units) {
  JobPlan plan;
  plan.job = std::move(job);
  plan.phases = std::move(phases);
  plan.result_bytes = result_bytes;
  plan.complete = complete;
  plan.units = units;
  for (JobPhase& phase : plan.phases) {
    phase.units = units;
    plan.peak_bytes = std::max(plan.peak_bytes, phase.peak_bytes);
  }
  return plan;
}

}  // namespace leadline::jobs
