// SPDX-License-Identifier: Apache-2.0
#include "report/job_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace leadline {

Json report::plan_json(const JobPlan& plan) {
  Json json = {{"job", plan.job},
               {"peak_bytes", plan.peak_bytes},
               {"result_bytes", plan.result_bytes},
               {"complete", plan.complete}};
  json["phases"] = Json::array();
  for (const JobPhase& phase : plan.phases) {
    Json categories = Json::object();
    for (const CategoryBytes& c : phase.categories) categories[memory_category_name(c.category)] = c.bytes;
    json["phases"].push_back({{"name", phase.name},
                              {"peak_bytes", phase.peak_bytes},
                              {"categories", std::move(categories)},
                              {"detail", phase.detail}});
  }
  return json;
}

std::string JobPlan::to_text() const {
  const auto sized = [this](int64_t count) { return format_bytes(count, units); };
  size_t name = 0, bytes = 0, size = 0;
  for (const JobPhase& phase : phases) {
    name = std::max(name, phase.name.size());
    bytes = std::max(bytes, fmt::formatted_size("{}", phase.peak_bytes));
    size = std::max(size, sized(phase.peak_bytes).size());
  }
  std::string text = fmt::format("{} takes at most {} ({} bytes)", job, sized(peak_bytes), peak_bytes);
  if (result_bytes > 0) {
    text += fmt::format(", its result {} ({} bytes)", sized(result_bytes), result_bytes);
  }
  text += '\n';
  for (const JobPhase& phase : phases) {
    fmt::format_to(std::back_inserter(text), "  {:<{}}  {:>{}}  {:>{}} bytes  {}\n", phase.name, name,
                   sized(phase.peak_bytes), size, phase.peak_bytes, bytes, phase.detail);
  }
  if (!complete) {
    text +=
        "Not complete: some shapes depend on data of a run. The numbers cover what is known so far;\n"
        "the rest is planned while running, inside the budget.\n";
  }
  return text;
}

std::string JobPlan::to_json() const { return report::plan_json(*this).dump(); }

}  // namespace leadline
