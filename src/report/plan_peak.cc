// SPDX-License-Identifier: Apache-2.0
#include "report/plan_peak.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace leadline::report {

int peak_step(const Plan& plan) {
  const auto peak = std::max_element(plan.steps.begin(), plan.steps.end(),
                                     [](const auto& a, const auto& b) { return a.live_bytes < b.live_bytes; });
  return peak == plan.steps.end() ? -1 : static_cast<int>(peak - plan.steps.begin());
}

std::vector<const PlannedTensor*> live_tensors(const Plan& plan, int step) {
  if (step < 0 || step >= static_cast<int>(plan.steps.size())) return {};
  const int segment = plan.steps[static_cast<size_t>(step)].segment;
  std::map<int, const PlannedTensor*> pieces;  // by the tensor that owns the memory
  for (const PlannedTensor& tensor : plan.tensors) {
    const bool alive = tensor.first_step <= step && step <= tensor.last_step;
    if (tensor.storage != Storage::kArena || tensor.segment != segment || !alive || tensor.bytes == 0) continue;
    const bool owner = tensor.shares_with < 0;
    const PlannedTensor*& piece = pieces[owner ? tensor.index : tensor.shares_with];
    if (piece == nullptr || owner) piece = &tensor;
  }
  std::vector<const PlannedTensor*> result;
  result.reserve(pieces.size());
  for (const auto& [owner, tensor] : pieces) result.push_back(tensor);
  std::stable_sort(result.begin(), result.end(), [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
  return result;
}

std::string percent(int64_t part, int64_t whole) {
  if (whole <= 0) return "-";
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace leadline::report
