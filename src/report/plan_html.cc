// SPDX-License-Identifier: Apache-2.0
// A Plan as one self-contained page. The summary is plain markup; the picture and the tables are drawn by the page's
// script from a JSON block. Everything that comes from a model is escaped for the place where it is written, and the
// page's content policy forbids any connection.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "core/join.h"
#include "leadline/plan.h"
#include "report/assets.h"
#include "report/page.h"
#include "report/plan_peak.h"
#include "report/print.h"

namespace leadline {
namespace {

namespace assets = report::assets;
using report::add_card;
using report::escape_html;
using report::percent;
using report::print;

int64_t category_bytes(const Plan& plan, MemoryCategory category) {
  const auto found = std::find_if(plan.categories.begin(), plan.categories.end(),
                                  [&](const CategoryBytes& c) { return c.category == category; });
  return found == plan.categories.end() ? 0 : found->bytes;
}

void add_cards(std::string& page, const Plan& plan) {
  const int64_t gap = plan.arena_bytes - plan.lower_bound_bytes;
  const int64_t packed = category_bytes(plan, MemoryCategory::kPackedWeights);
  const int64_t file = category_bytes(plan, MemoryCategory::kModelFile);
  page += "<div class=cards>\n";
  add_card(page, "Peak", format_bytes(plan.peak_bytes, plan.units),
           fmt::format("{} bytes, the file included", plan.peak_bytes));
  add_card(page, "Arena", format_bytes(plan.arena_bytes, plan.units),
           percent(plan.arena_bytes, plan.peak_bytes) + " of the peak");
  add_card(page, "Lower bound", format_bytes(plan.lower_bound_bytes, plan.units),
           gap == 0 ? std::string("the arena meets it")
                    : fmt::format("gap {} ({})", format_bytes(gap, plan.units), percent(gap, plan.lower_bound_bytes)));
  add_card(page, "Packed weights", format_bytes(packed, plan.units), percent(packed, plan.peak_bytes) + " of the peak");
  add_card(page, "Model file", format_bytes(file, plan.units), "mapped, not copied");
  page += "</div>\n";
}

void add_categories(std::string& page, const Plan& plan) {
  int64_t largest = 1;
  for (const CategoryBytes& c : plan.categories) largest = std::max(largest, c.bytes);
  page += "<section><h2>What the peak is made of</h2><div class=\"panel bars\">\n";
  for (const CategoryBytes& c : plan.categories) {
    print(page,
          "<span>{}</span><div class=track><span style=\"width:{:.2f}%;background:var(--c{})\"></span></div>"
          "<span class=num>{}<i>{}</i></span>\n",
          memory_category_name(c.category), 100.0 * static_cast<double>(c.bytes) / static_cast<double>(largest),
          static_cast<int>(c.category), format_bytes(c.bytes, plan.units), percent(c.bytes, plan.peak_bytes));
  }
  page += "</div></section>\n";
}

void add_phases(std::string& page, const Plan& plan) {
  int64_t largest = 1;
  for (const PlannedPhase& phase : plan.phases) largest = std::max(largest, phase.bytes);
  page += "<section><h2>Phases</h2><div class=\"panel bars\">\n";
  for (const PlannedPhase& phase : plan.phases) {
    print(page, "<span>{}</span><div class=track>", escape_html(phase.name));
    for (const CategoryBytes& c : phase.categories) {
      print(page, "<span title=\"{}: {}\" style=\"width:{:.3f}%;background:var(--c{})\"></span>",
            memory_category_name(c.category), format_bytes(c.bytes, plan.units),
            100.0 * static_cast<double>(c.bytes) / static_cast<double>(largest), static_cast<int>(c.category));
    }
    print(page, "</div><span class=num>{}<i>{}</i></span>\n", format_bytes(phase.bytes, plan.units),
          percent(phase.bytes, largest));
  }
  page += "</div></section>\n";
}

}  // namespace

std::string Plan::to_html(const std::string& title) const {
  std::string page;
  print(page, "<h1>{}</h1>\n<p class=sub>Memory plan &middot; {} steps &middot; {} tensors &middot; {} thread{}</p>\n",
        escape_html(title), steps.size(), tensors.size(), threads, threads == 1 ? "" : "s");
  if (bound_bytes > 0) {
    print(page, "<p class=sub>Memory of the caller, not counted: {} ({} bytes)</p>\n", format_bytes(bound_bytes, units),
          bound_bytes);
  }
  if (!complete) {
    page +=
        "<p class=warn>Not complete: some shapes depend on data of a run. The numbers cover what is known so far; "
        "the rest is planned while running, inside the budget.</p>\n";
  }
  if (!missing_ops.empty()) {
    print(page,
          "<p class=warn>Planned without {}: no implementation. Their outputs have the shapes in the file; "
          "what the ops would take themselves is not counted, and the model cannot run.</p>\n",
          escape_html(join(missing_ops, ", ")));
  }
  add_cards(page, *this);
  add_categories(page, *this);
  add_phases(page, *this);
  page += assets::plan_html;
  return report::make_page({title + " \u00b7 memory plan", assets::plan_css, page, "plan", to_json(), assets::plan_js});
}

std::string Plan::to_notebook_html(const std::string& title) const {
  const std::string sentence =
      fmt::format("Peak {}, arena {} (lower bound {}), {} steps{}", format_bytes(peak_bytes, units),
                  format_bytes(arena_bytes, units), format_bytes(lower_bound_bytes, units), steps.size(),
                  complete ? "" : ", incomplete");
  return report::make_frame("Memory plan", sentence, to_html(title));
}

}  // namespace leadline
