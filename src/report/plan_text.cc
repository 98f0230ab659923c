// SPDX-License-Identifier: Apache-2.0
// A Plan as a table of text. Names come from the model: they are made printable and cut to a column.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "core/join.h"
#include "leadline/plan.h"
#include "report/plan_peak.h"
#include "report/print.h"

namespace leadline {
namespace {

constexpr size_t kTopTensors = 10;
constexpr size_t kTopContributors = 3;
constexpr size_t kNameColumn = 48;

using report::print;

/// Printable and at most kNameColumn bytes: the end of a tensor's name says more than its start.
std::string short_name(std::string_view name) {
  std::string text = printable(name);
  if (text.size() <= kNameColumn) return text;
  size_t start = text.size() - (kNameColumn - 3);
  while (start < text.size() && (static_cast<unsigned char>(text[start]) & 0xC0U) == 0x80U) ++start;
  return "..." + text.substr(start);
}

std::vector<CategoryBytes> largest_first(std::vector<CategoryBytes> categories) {
  std::stable_sort(categories.begin(), categories.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return categories;
}

std::string list(const std::vector<CategoryBytes>& categories, size_t count, ByteUnits units) {
  std::string text;
  for (size_t i = 0; i < std::min(count, categories.size()); ++i) {
    print(text, "{}{} {}", i == 0 ? "" : ", ", memory_category_name(categories[i].category),
          format_bytes(categories[i].bytes, units));
  }
  return text;
}

void print_summary(std::string& text, const Plan& plan) {
  print(text, "Peak {} ({} bytes) with {} thread{}", format_bytes(plan.peak_bytes, plan.units), plan.peak_bytes,
        plan.threads, plan.threads == 1 ? "" : "s");
  if (!plan.categories.empty()) print(text, ": {}", list(largest_first(plan.categories), kTopContributors, plan.units));
  text += '\n';
  if (plan.bound_bytes > 0) {
    print(text, "Memory of the caller, not counted: {} ({} bytes)\n", format_bytes(plan.bound_bytes, plan.units),
          plan.bound_bytes);
  }
  if (!plan.complete) {
    text +=
        "Not complete: some shapes depend on data of a run. The numbers cover what is known so far;\n"
        "the rest is planned while running, inside the budget.\n";
  }
  if (!plan.missing_ops.empty()) {
    print(text,
          "Planned without {}: no implementation. Their outputs have the shapes in the file; what the ops\n"
          "would take themselves is not counted, and the model cannot run.\n",
          printable(join(plan.missing_ops, ", ")));
  }
}

void print_categories(std::string& text, const Plan& plan) {
  print(text, "\n{:<20}{:>12}{:>10}\n", "Memory at the peak", "", "share");
  for (const CategoryBytes& c : plan.categories) {
    print(text, "  {:<18}{:>12}{:>10}\n", memory_category_name(c.category), format_bytes(c.bytes, plan.units),
          report::percent(c.bytes, plan.peak_bytes));
  }
}

void print_phases(std::string& text, const Plan& plan) {
  text += "\nPhases\n";
  for (const PlannedPhase& phase : plan.phases) {
    print(text, "  {:<18}{:>12}  {}\n", printable(phase.name), format_bytes(phase.bytes, plan.units),
          list(largest_first(phase.categories), kTopContributors, plan.units));
  }
}

void print_arena(std::string& text, const Plan& plan) {
  const int64_t gap = plan.arena_bytes - plan.lower_bound_bytes;
  const auto count = std::count_if(plan.tensors.begin(), plan.tensors.end(),
                                   [](const auto& t) { return t.storage == Storage::kArena; });
  const auto shared = std::count_if(plan.tensors.begin(), plan.tensors.end(),
                                    [](const auto& t) { return t.storage == Storage::kArena && t.shares_with >= 0; });
  text += "\nArena\n";
  print(text, "  {:<18}{:>12}\n", "size", format_bytes(plan.arena_bytes, plan.units));
  print(text, "  {:<18}{:>12}  most bytes alive at one step: no layout can be smaller\n", "lower bound",
        format_bytes(plan.lower_bound_bytes, plan.units));
  print(text, "  {:<18}{:>12}  {}\n", "gap", format_bytes(gap, plan.units),
        gap == 0 ? std::string("optimal") : report::percent(gap, plan.lower_bound_bytes) + " above the lower bound");
  print(text, "  {:<18}{:>12}  {} of them in memory of another tensor\n", "tensors", count, shared);
  size_t merged = 0;
  for (const PlannedStep& step : plan.steps) merged += step.merged.size();
  print(text, "  {:<18}{:>12}{}\n", "steps", plan.steps.size(),
        merged == 0 ? "" : fmt::format("  {} other nodes are merged into them", merged));
  if (plan.recompute_bytes > 0) {
    print(text, "  {:<18}{:>12}  about what reading an intermediate tensor takes besides: a second run\n", "reading",
          format_bytes(plan.recompute_bytes, plan.units));
  }
  if (plan.segments.size() > 1) {
    print(text, "  {:<18}{:>12}  one arena each: shapes depend on data\n", "segments", plan.segments.size());
  }
}

void print_peak_tensors(std::string& text, const Plan& plan) {
  const int peak = report::peak_step(plan);
  if (peak < 0) return;
  const PlannedStep& step = plan.steps[static_cast<size_t>(peak)];
  print(text, "\nHighest step: {} of {}, {} #{} '{}', {} alive\n", peak, plan.steps.size(), printable(step.op),
        step.node, short_name(step.name), format_bytes(step.live_bytes, plan.units));
  const std::vector<const PlannedTensor*> live = report::live_tensors(plan, peak);
  if (live.empty() && step.scratch_bytes == 0) return;
  print(text, "  {:>12}  {:<11}{:<24}{:<10}{}\n", "bytes", "type", "shape", "steps", "tensor");
  if (step.scratch_bytes > 0) {
    print(text, "  {:>12}  {:<11}{:<24}{:<10}{}\n", format_bytes(step.scratch_bytes, plan.units), "-", "-", peak,
          "(scratch of this step)");
  }
  for (size_t i = 0; i < std::min(kTopTensors, live.size()); ++i) {
    const PlannedTensor& t = *live[i];
    print(text, "  {:>12}  {:<11}{:<24}{:<10}#{} {}\n", format_bytes(t.bytes, plan.units), dtype_name(t.dtype),
          t.shape.to_string(), fmt::format("{}-{}", std::max(0, t.first_step), t.last_step), t.index,
          short_name(t.name));
  }
  if (live.size() > kTopTensors) print(text, "  {:>12}  and {} smaller\n", "", live.size() - kTopTensors);
}

}  // namespace

std::string Plan::to_text() const {
  std::string text;
  print_summary(text, *this);
  print_categories(text, *this);
  print_phases(text, *this);
  print_arena(text, *this);
  print_peak_tensors(text, *this);
  return text;
}

}  // namespace leadline
