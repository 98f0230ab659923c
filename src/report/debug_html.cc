// SPDX-License-Identifier: Apache-2.0
// A DebugResult as one self-contained page. What matters most, the verdict, the suspects and the commands, is plain
// markup; charts and the table of layers are drawn by the page's script from a JSON block.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "leadline/budget.h"
#include "leadline/debug_result.h"
#include "leadline/types.h"
#include "report/assets.h"
#include "report/debug_commands.h"
#include "report/debug_data.h"
#include "report/debug_parts_html.h"
#include "report/page.h"
#include "report/print.h"

namespace leadline {
namespace {

namespace assets = report::assets;
using report::add_card;
using report::escape_html;
using report::print;
using report::relative_error;

/// Errors of outputs, as shares of the signal, that the verdict calls fair and poor: 20 dB and 10 dB.
constexpr double kFair = 0.1;
constexpr double kPoor = 0.3162;
constexpr size_t kSuspectsShown = 5;
constexpr size_t kSuspectsListed = 100;

std::string percent(double share) { return fmt::format("{:.3g} %", 100.0 * share); }

std::string plural(size_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

const DebugOutput* worst_output(const DebugResult& result) {
  const auto worse = [](const DebugOutput& a, const DebugOutput& b) {
    if (a.accumulated.not_finite != b.accumulated.not_finite) {
      return a.accumulated.not_finite < b.accumulated.not_finite;
    }
    return a.accumulated.snr_db > b.accumulated.snr_db;
  };
  const auto found = std::max_element(result.outputs.begin(), result.outputs.end(), worse);
  return found == result.outputs.end() ? nullptr : &*found;
}

struct Verdict {
  std::string_view level;  // a class of the style: good, fair, poor
  std::string text;
};

Verdict find_verdict(const DebugResult& result, const std::vector<std::string>& labels) {
  if (result.samples == 0) return {"fair", "No sample was run: there is nothing to compare yet."};
  const DebugOutput* output = worst_output(result);
  Verdict verdict{"good", ""};
  if (output == nullptr) {
    verdict = {"fair", "No output could be compared"};
  } else if (output->accumulated.not_finite > 0) {
    verdict = {"poor", fmt::format("{} values of output '{}' are NaN or infinite", output->accumulated.not_finite,
                                   output->name)};
  } else {
    const double error = relative_error(output->accumulated);
    verdict.level = error > kPoor ? "poor" : error > kFair || !result.suspects.empty() ? "fair" : "good";
    verdict.text = error > 0.0 ? fmt::format("The quantized model's {} is off by {} of its signal",
                                             result.outputs.size() == 1 ? "output" : "worst output", percent(error))
                               : "The quantized model's outputs are exactly the float model's";
    if (output->rows > 0) {
      verdict.text += fmt::format(" and has its largest value at the same place in {} of {}",
                                  percent(output->same_argmax), plural(static_cast<size_t>(output->rows), "row"));
    }
  }
  if (result.suspects.empty()) {
    verdict.text += "; no layer loses more than rounding must cost.";
  } else {
    const auto first = static_cast<size_t>(result.suspects.front().layer);
    verdict.text += fmt::format("; {} to look at", plural(result.suspects.size(), "layer"));
    if (first < labels.size()) verdict.text += fmt::format(", first '{}'", labels[first]);
    verdict.text += '.';
  }
  return verdict;
}

void add_cards(std::string& page, const DebugResult& result, const DebugRun& run) {
  page += "<div class=cards>\n";
  if (const DebugOutput* output = worst_output(result)) {
    const ErrorStatistics& e = output->accumulated;
    add_card(page, "Output error", e.elements > 0 ? percent(relative_error(e)) : "&ndash;",
             e.snr_db >= kBestSnrDb ? std::string("exact") : fmt::format("SNR {:.3g} dB", e.snr_db));
    if (output->rows > 0) {
      add_card(page, "Same top answer", percent(output->same_argmax),
               "of " + plural(static_cast<size_t>(output->rows), "row"));
    }
  }
  add_card(page, "Suspects", fmt::format("{}", result.suspects.size()), "of " + plural(result.layers.size(), "layer"));
  if (result.quantized_bytes > 0) {
    const double ratio = static_cast<double>(result.quantized_bytes) / static_cast<double>(result.float_bytes);
    add_card(page, "Quantized file", format_bytes(result.quantized_bytes, result.plan.units),
             result.float_bytes > 0
                 ? fmt::format("{} of {}", percent(ratio), format_bytes(result.float_bytes, result.plan.units))
                 : "");
  }
  if (result.plan.peak_bytes > 0) {
    add_card(
        page, "Memory planned", format_bytes(result.plan.peak_bytes, result.plan.units),
        run.counted_bytes > 0 ? fmt::format("counted: {}", format_bytes(run.counted_bytes, result.plan.units)) : "");
  }
  const std::string samples = plural(static_cast<size_t>(std::max<int64_t>(result.samples, 0)), "sample");
  if (run.seconds > 0.0) {
    add_card(page, "Time", fmt::format("{:.3g} s", run.seconds), samples);
  } else {
    add_card(page, "Samples", fmt::format("{}", result.samples), "run through both models");
  }
  page += "</div>\n";
}

void add_suspect(std::string& page, const DebugSuspect& suspect, const std::vector<std::string>& labels, bool tried,
                 bool by_effect) {
  std::string kind = suspect.kind;
  std::replace(kind.begin(), kind.end(), '_', ' ');
  const auto index = static_cast<size_t>(suspect.layer);
  print(page,
        "<li><div class=text><p class=kind>{}<span>{}</span><span>{}</span></p><p>{}</p>{}"
        "</div><button type=button data-layer={}>Show layer</button></li>\n",
        index < labels.size() ? escape_html(labels[index]) : "", escape_html(kind),
        by_effect ? percent(suspect.score) + " of the outputs' error"
                  : fmt::format("channels lose {} of their power", percent(suspect.score)),
        escape_html(suspect.why),
        // Advice that was not tried is worth less than none where some was.
        tried ? "" : fmt::format("<p class=try><b>Try</b> {}</p>", escape_html(suspect.try_this)), suspect.layer);
}

void add_suspects(std::string& page, const DebugResult& result, const std::vector<std::string>& labels) {
  page += "<section id=suspects><h2>Suspects</h2>\n";
  const size_t count = result.suspects.size(), listed = std::min(count, kSuspectsListed);
  if (count == 0) page += "<p class=\"panel note\">No layer loses more than rounding must cost.</p>\n";
  if (count > 0) page += "<ol class=\"panel suspects\">\n";
  for (size_t i = 0; i < std::min(listed, kSuspectsShown); ++i)
    add_suspect(page, result.suspects[i], labels, !result.suggestions.empty(), !result.regions.empty());
  if (count > 0) page += "</ol>\n";
  if (listed > kSuspectsShown) {
    print(page, "<details class=panel><summary>{} more</summary><ol class=suspects style=\"counter-reset:rank {}\">\n",
          count - kSuspectsShown, kSuspectsShown);
    for (size_t i = kSuspectsShown; i < listed; ++i)
      add_suspect(page, result.suspects[i], labels, !result.suggestions.empty(), !result.regions.empty());
    page += "</ol>";
    if (count > listed) print(page, "<p class=note>The rest is in the table: show suspects.</p>");
    page += "</details>\n";
  }
  page += "</section>\n";
}

void add_outputs(std::string& page, const DebugResult& result) {
  if (result.outputs.empty()) return;
  page +=
      "<section><h2>Outputs</h2><div class=panel><div class=table tabindex=0 role=group aria-label=Outputs><table>"
      "<thead><tr><th scope=col>name</th><th scope=col class=r>error</th><th scope=col class=r>SNR, dB</th>"
      "<th scope=col class=r>rmse</th><th scope=col class=r>largest</th><th scope=col class=r>cosine</th>"
      "<th scope=col class=r>same top answer</th></tr></thead><tbody>\n";
  for (const DebugOutput& output : result.outputs) {
    const ErrorStatistics& e = output.accumulated;
    print(
        page,
        "<tr{}><td class=w>{}</td><td class=r>{}</td><td class=r>{}</td><td class=r>{:.3g}</td><td class=r>{:.3g}</td>"
        "<td class=r>{:.5f}</td><td class=r>{}</td></tr>\n",
        output.layer >= 0 ? fmt::format(" data-layer={}", output.layer) : "", escape_html(output.name),
        percent(relative_error(e)), e.snr_db >= kBestSnrDb ? std::string("exact") : fmt::format("{:.3g}", e.snr_db),
        e.rmse, e.max_abs_error, e.cosine, output.rows > 0 ? percent(output.same_argmax) : "");
  }
  page += "</tbody></table></div></div></section>\n";
}

void add_memory(std::string& page, const JobPlan& plan) {
  const auto peak = std::find_if(plan.phases.begin(), plan.phases.end(),
                                 [&](const JobPhase& phase) { return phase.peak_bytes == plan.peak_bytes; });
  if (peak == plan.phases.end() || plan.peak_bytes <= 0) return;
  int64_t largest = 1;
  for (const CategoryBytes& c : peak->categories) largest = std::max(largest, c.bytes);
  page += "<section><h2>Memory of debugging, as planned</h2><div class=\"panel bars\">\n";
  for (const CategoryBytes& c : peak->categories) {
    print(page,
          "<span>{}</span><div class=track><span style=\"width:{:.2f}%;background:var(--c{})\"></span></div>"
          "<span class=num>{}<i>{:.1f} %</i></span>\n",
          memory_category_name(c.category), 100.0 * static_cast<double>(c.bytes) / static_cast<double>(largest),
          static_cast<int>(c.category), format_bytes(c.bytes, plan.units),
          100.0 * static_cast<double>(c.bytes) / static_cast<double>(plan.peak_bytes));
  }
  page += "</div></section>\n";
}

void add_commands(std::string& page, const DebugResult& result, const DebugRun& run) {
  page += "<section id=commands><h2>Do it again</h2>\n";
  for (const report::Command& command : report::page_commands(result, run)) {
    print(page,
          "<div class=\"panel command\"><div class=head><span>{}</span><button type=button class=copy>Copy</button>"
          "</div><pre tabindex=0>{}</pre></div>\n",
          escape_html(command.title), report::escape_lines(command.text));
  }
  page += "</section>\n";
}

void add_unmatched(std::string& page, const std::vector<std::string>& unmatched) {
  if (unmatched.empty()) return;
  print(page, "<section><details class=panel><summary>Not compared: {}</summary><ul>\n",
        plural(unmatched.size(), "node"));
  for (const std::string& node : unmatched) print(page, "<li>{}</li>\n", escape_html(node));
  page += "</ul></details></section>\n";
}

std::string page_title(const DebugRun& run) {
  return run.quantized_model.empty() ? "Quantized model" : file_name(run.quantized_model);
}

}  // namespace

std::string DebugResult::to_html(const DebugRun& run) const {
  const std::vector<std::string> labels = report::layer_labels(layers);
  const Verdict verdict = find_verdict(*this, labels);
  std::string body;
  print(body, "<h1>{}</h1>\n<p class=sub>Quantization report &middot; against {} &middot; {} &middot; {}</p>\n",
        escape_html(page_title(run)),
        run.float_model.empty() ? std::string("the float model") : escape_html(file_name(run.float_model)),
        plural(static_cast<size_t>(std::max<int64_t>(samples, 0)), "sample"), plural(layers.size(), "layer"));
  print(body, "<p id=verdict class=\"panel verdict {}\">{}</p>\n", verdict.level, escape_html(verdict.text));
  add_cards(body, *this, run);
  report::add_suggestions(body, *this);
  add_suspects(body, *this, labels);
  report::add_regions(body, *this);
  body += assets::debug_html;
  add_outputs(body, *this);
  add_commands(body, *this, run);
  add_memory(body, plan);
  add_unmatched(body, unmatched);
  const std::string script =
      fmt::format("{}{}{}{}", assets::debug_js, assets::debug_table_js, assets::debug_layer_js, assets::debug_chart_js);
  const std::string style = fmt::format("{}{}", assets::debug_css, assets::debug_parts_css);
  return report::make_page(
      {page_title(run) + " \u00b7 quantization report", style, body, "result", report::page_data(*this), script});
}

std::string DebugResult::to_notebook_html(const DebugRun& run) const {
  return report::make_frame("Quantization report", find_verdict(*this, report::layer_labels(layers)).text,
                            to_html(run));
}

}  // namespace leadline
