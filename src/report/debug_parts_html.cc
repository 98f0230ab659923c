// SPDX-License-Identifier: Apache-2.0
#include "report/debug_parts_html.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "leadline/types.h"
#include "report/debug_data.h"
#include "report/page.h"
#include "report/print.h"

namespace leadline::report {
namespace {

/// A page with more would be slow to open, and nobody reads on.
constexpr size_t kRegionsListed = 400;

std::string share_of(double share) {
  const double value = 100.0 * share;
  return std::fabs(value) >= 9.95 || value == 0.0 ? fmt::format("{:.0f} %", value) : fmt::format("{:.1f} %", value);
}

/// Two bars: the error that there was, and what is left of it.
std::string error_bars(const DebugMeasure& before, const DebugMeasure& after) {
  const double left = before.error > 0.0 ? std::clamp(after.error / before.error, 0.0, 1.0) : 1.0;
  return fmt::format(
      "<div class=beforeafter title=\"error, as share of the signal\"><i style=\"width:100%\"></i>"
      "<b style=\"width:{:.2f}%\"></b></div>{} &rarr; {}",
      std::max(100.0 * left, 0.5), share_of(before.error), share_of(after.error));
}

std::string change_of(int64_t bytes, ByteUnits units) {
  return fmt::format("{}{}", bytes < 0 ? "&minus;" : "+", format_bytes(std::abs(bytes), units));
}

void add_suggestion(std::string& page, const DebugSuggestion& s, ByteUnits units) {
  std::string time = "&ndash;";
  if (s.before.seconds > 0.0) {
    time = fmt::format("{:.3g} &rarr; {:.3g} ms", 1e3 * s.before.seconds, 1e3 * s.after.seconds);
  }
  print(page,
        "<tr><td class=w>{}<details class=command><summary>Recipe</summary><button type=button class=copy>Copy</button>"
        "<pre tabindex=0>{}</pre></details></td><td>{}</td><td class=r>{:.4f} &rarr; {:.4f}</td><td class=r>{}</td>"
        "<td class=r>{}<br>{}</td><td class=r>{}</td></tr>\n",
        escape_html(s.what), escape_lines(s.recipe), error_bars(s.before, s.after), s.before.cosine, s.after.cosine,
        s.after.rows > 0 ? fmt::format("{} &rarr; {}", share_of(s.before.same_argmax), share_of(s.after.same_argmax))
                         : "&ndash;",
        format_bytes(s.after.file_bytes, units), change_of(s.after.file_bytes - s.before.file_bytes, units), time);
}

/// Regions that are parts of one, those of equal blocks together, the largest effect first.
struct Alike {
  std::string pattern;
  std::vector<int> regions;
};

class Tree {
 public:
  explicit Tree(const DebugResult& result) : result_(result) {
    for (size_t i = 0; i < result.regions.size(); ++i) parts_[result.regions[i].parent].push_back(static_cast<int>(i));
  }

  void add(std::string& page, int parent) {
    for (const Alike& alike : grouped(parts_[parent])) {
      if (listed_ > kRegionsListed) return;
      if (alike.regions.size() == 1) {
        add_region(page, alike.regions.front());
        continue;
      }
      const DebugRegion& worst = at(alike.regions.front());
      print(page, "<details class=part><summary>{}</summary><div class=parts>\n",
            row(worst,
                fmt::format("{} &times; {}, the worst is shown", alike.regions.size(), escape_html(alike.pattern))));
      for (const int region : alike.regions) add_region(page, region);
      page += "</div></details>\n";
    }
  }

 private:
  const DebugRegion& at(int region) const { return result_.regions[static_cast<size_t>(region)]; }

  std::vector<Alike> grouped(const std::vector<int>& regions) const {
    std::vector<Alike> groups;
    for (const int region : regions) {
      const std::string pattern = without_numbers(at(region).name);
      const auto found =
          std::find_if(groups.begin(), groups.end(), [&](const Alike& a) { return a.pattern == pattern; });
      if (found != groups.end()) {
        found->regions.push_back(region);
      } else {
        groups.push_back({pattern, {region}});
      }
    }
    return groups;
  }

  static std::string row(const DebugRegion& region, const std::string& name) {
    const double width = 100.0 * std::clamp(region.effect, 0.0, 1.0);
    std::string told_apart;
    if (region.weights_effect && region.values_effect) {
      told_apart = fmt::format("<span class=sub>weights {}, values {}</span>", share_of(*region.weights_effect),
                               share_of(*region.values_effect));
    }
    return fmt::format(
        "<span class=effect><i style=\"width:{:.2f}%\"></i></span><span class=num>{}</span>"
        "<span class=name>{}{}</span><span class=sub>{} {}, cosine then {:.4f}</span>",
        width, share_of(region.effect), name, told_apart, region.nodes, region.nodes == 1 ? "node" : "nodes",
        region.cosine);
  }

  void add_region(std::string& page, int region) {
    ++listed_;
    const std::string text = row(at(region), escape_html(at(region).name));
    if (parts_[region].empty()) {
      print(page, "<div class=part{}>{}</div>\n",
            at(region).layers.empty() ? "" : fmt::format(" data-layer={}", at(region).layers.front()), text);
      return;
    }
    print(page, "<details class=part><summary>{}</summary><div class=parts>\n", text);
    add(page, region);
    page += "</div></details>\n";
  }

  const DebugResult& result_;
  std::map<int, std::vector<int>> parts_;
  size_t listed_ = 0;
};

}  // namespace

void add_suggestions(std::string& page, const DebugResult& result) {
  if (result.suggestions.empty()) return;
  const DebugSuggestion& first = result.suggestions.front();
  print(page,
        "<section id=suggestions><h2>What helps</h2><p class=note>Each change was made, quantized and measured on {} "
        "samples{}.</p><div class=panel><div class=table tabindex=0 role=group aria-label=\"What helps\"><table><thead>"
        "<tr><th scope=col>change</th><th scope=col>error</th><th scope=col class=r>cosine</th>"
        "<th scope=col class=r>same top answer</th><th scope=col class=r>file</th><th scope=col class=r>a run</th></tr>"
        "</thead><tbody>\n",
        first.samples, first.held_out ? " that it was not chosen by" : ", which it was chosen by");
  for (const DebugSuggestion& suggestion : result.suggestions) add_suggestion(page, suggestion, result.plan.units);
  page += "</tbody></table></div></div></section>\n";
}

void add_regions(std::string& page, const DebugResult& result) {
  if (result.regions.empty()) return;
  page +=
      "<section id=parts><h2>Parts of the network by effect</h2><p class=note>The share of the outputs' error that "
      "goes "
      "when a part computes in float. Rows open into their parts; equal blocks are one row.";
  if (result.error && result.weights_error && result.values_error && *result.error > 0.0) {
    print(page, " With weights alone quantized the outputs have {} of their error, with values alone {}.",
          share_of(*result.weights_error / *result.error), share_of(*result.values_error / *result.error));
  }
  page += "</p><div class=panel>\n";
  Tree(result).add(page, -1);
  if (result.regions.size() > kRegionsListed) {
    print(page, "<p class=note>The first {} of {} are listed.</p>\n", kRegionsListed, result.regions.size());
  }
  page += "</div></section>\n";
}

}  // namespace leadline::report
