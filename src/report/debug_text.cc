// SPDX-License-Identifier: Apache-2.0
// A DebugResult for a terminal of 80 columns, and its verdict in words.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/cancel.h"
#include "io/json.h"
#include "leadline/debug_result.h"
#include "leadline/types.h"
#include "report/debug_data.h"

namespace leadline {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kShownSuspects = 5;
constexpr size_t kShownRegions = 16;

/// In lines of at most 80 columns; those after the first are indented by `indent`.
std::string wrapped(const std::string& text, size_t indent) {
  std::string result;
  size_t column = 0;
  size_t start = 0;
  while (start < text.size()) {
    size_t end = text.find(' ', start);
    if (end == std::string::npos) end = text.size();
    const std::string word = text.substr(start, end - start);
    start = end + 1;
    if (column > indent && column + 1 + word.size() > kColumns) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!result.empty() && (column > indent || result.back() != ' ')) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result + '\n';
}

/// The end of a name, where it differs from others.
std::string fitted(const std::string& name, size_t width) {
  return name.size() <= width ? name : "..." + name.substr(name.size() - (width - 3));
}

std::string share_text(double share) {
  const double value = 100.0 * share;
  return std::fabs(value) >= 9.95 || value == 0.0 ? fmt::format("{:.0f} %", value) : fmt::format("{:.1f} %", value);
}

std::string outputs_text(const DebugResult& result) {
  std::string text = "\nOutputs\n   cosine      rmse       max       dB  same top answer\n";
  for (const DebugOutput& output : result.outputs) {
    const ErrorStatistics& e = output.accumulated;
    text += fmt::format("  {:.5f}  {:>8.4g}  {:>8.4g}  {:>7.3g}", e.cosine, e.rmse, e.max_abs_error, e.snr_db);
    const std::string rows = fmt::format("{:.4g} % of {}", 100.0 * output.same_argmax, output.rows);
    text += fmt::format("  {:<15}  {}\n", output.rows > 0 ? rows : "-", fitted(printable(output.name), 22));
    if (e.broken > 0) text += fmt::format("  {} of its values are NaN or infinite, and numbers in float\n", e.broken);
  }
  return text;
}

/// Which of both does the damage.
std::string weights_or_values_text(const DebugResult& result) {
  if (!result.error || !result.weights_error || !result.values_error || *result.error <= 0.0) return "";
  return wrapped(
      fmt::format("With weights alone quantized the outputs have {} of their error, with values alone {}.",
                  share_text(*result.weights_error / *result.error), share_text(*result.values_error / *result.error)),
      0);
}

/// Whether a row of equal blocks is opened: its name has what was asked for.
bool is_opened(const std::string& name, const std::string& opened) {
  return !opened.empty() && name.find(opened) != std::string::npos;
}

std::string regions_text(const DebugResult& result, const std::string& opened) {
  if (result.regions.empty()) return "";
  std::string text =
      "\nParts by effect: the share of the outputs' error that goes when they are float\n"
      " effect  nodes  cosine  part\n";
  size_t shown = 0;
  std::map<std::string, int> like;
  for (const DebugRegion& region : result.regions) ++like[report::without_numbers(region.name)];
  std::map<std::string, bool> done;
  for (const DebugRegion& region : result.regions) {
    const std::string pattern = report::without_numbers(region.name);
    const bool alone = is_opened(region.name, opened);
    if (!alone && std::exchange(done[pattern], true)) continue;
    if (!alone && ++shown > kShownRegions) continue;
    const int others = alone ? 0 : like[pattern] - 1;
    const std::string more = others > 0 ? fmt::format(" (+{} like it)", others) : "";
    text += fmt::format("{:>7}  {:>5}  {:.4f}  {}{}\n", share_text(region.effect), region.nodes, region.cosine,
                        fitted(printable(region.name), kColumns - 24 - more.size()), more);
  }
  return text + weights_or_values_text(result);
}

std::string layers_text(const DebugResult& result, const std::string& opened) {
  const std::vector<std::string> labels = report::layer_labels(result.layers);
  std::map<std::pair<std::string, std::string>, std::vector<size_t>> groups;
  std::vector<std::pair<std::string, std::string>> order;
  PacedCheck check;
  for (size_t i = 0; i < result.layers.size(); ++i) {
    check.count(1 << 12);
    const bool alone = is_opened(labels[i], opened) || is_opened(result.layers[i].name, opened);
    std::pair<std::string, std::string> key(result.layers[i].op,
                                            alone ? fmt::format("{}", i) : report::without_numbers(labels[i]));
    std::vector<size_t>& group = groups[key];
    if (group.empty()) order.push_back(key);
    group.push_back(i);
  }
  std::string text = fmt::format("\n{:>5}  {:<16} {:>6} {:>6} {:>7} {:>6} {:>7}  {}\n", "layer", "op", "steps",
                                 "own dB", "tot. dB", "sat. %", "effect", "name");
  const auto own = [&](size_t i) { return result.layers[i].own ? result.layers[i].own->snr_db : kBestSnrDb; };
  const auto number = [](const std::optional<ErrorStatistics>& e, double ErrorStatistics::* field) {
    return e ? fmt::format("{:.3g}", (*e).*field) : std::string("-");
  };
  for (const auto& key : order) {
    const std::vector<size_t>& group = groups[key];
    const size_t worst =
        *std::min_element(group.begin(), group.end(), [&](size_t a, size_t b) { return own(a) < own(b); });
    const LayerDebug& layer = result.layers[worst];
    const std::string more = group.size() > 1 ? fmt::format(" (+{})", group.size() - 1) : "";
    text +=
        fmt::format("{:>5}  {:<16} {:>6} {:>6} {:>7} {:>6.3g} {:>7}  {}{}\n", layer.index,
                    fitted(printable(layer.op), 16), number(layer.own, &ErrorStatistics::rmse_over_scale),
                    number(layer.own, &ErrorStatistics::snr_db), number(layer.accumulated, &ErrorStatistics::snr_db),
                    100.0 * layer.saturated, layer.effect ? share_text(*layer.effect) : "-",
                    fitted(printable(labels[worst]), 17 - std::min<size_t>(more.size(), 10)), more);
  }
  text += wrapped(fmt::format("Of layers that are alike the worst is shown (+others; --open NAME lists them). Steps, "
                              "own: error of the layer "
                              "fed with the quantized model's values, in multiples of its scale ({:.3f}: rounding "
                              "alone, 1/sqrt(12)) and in dB; tot.: against the float model.",
                              kRoundingYardstick),
                  0);
  return text;
}

std::string suspects_text(const DebugResult& result) {
  if (result.suspects.empty()) return "";
  std::string text = "\nSuspects, the worst first\n";
  for (size_t i = 0; i < result.suspects.size() && i < kShownSuspects; ++i) {
    const DebugSuspect& suspect = result.suspects[i];
    text += wrapped(fmt::format("{}. {}", i + 1, printable(suspect.why)), 3);
    if (result.suggestions.empty()) text += wrapped(fmt::format("   Try: {}.", printable(suspect.try_this)), 3);
  }
  if (result.suspects.size() > kShownSuspects) {
    text += fmt::format("  and {} more\n", result.suspects.size() - kShownSuspects);
  }
  return text;
}

std::string suggestion_text(const DebugSuggestion& s, ByteUnits units) {
  std::string text = fmt::format("{}: cosine {:.3f} -> {:.3f}", printable(s.what), s.before.cosine, s.after.cosine);
  if (s.after.rows > 0) {
    text +=
        fmt::format(", same top answer {:.0f} -> {:.0f} %", 100.0 * s.before.same_argmax, 100.0 * s.after.same_argmax);
  }
  const int64_t bytes = s.after.file_bytes - s.before.file_bytes;
  text += fmt::format(", {}{}", bytes < 0 ? "-" : "+", format_bytes(std::abs(bytes), units));
  if (s.before.seconds > 0.0) {
    // A few percent are the machine's own.
    constexpr double kSameTime = 5.0;
    const double percent = 100.0 * (s.after.seconds / s.before.seconds - 1.0);
    text += std::abs(percent) < kSameTime ? ", same time" : fmt::format(", {:+.0f} % time", percent);
  }
  return text;
}

std::string suggestions_text(const DebugResult& result) {
  if (result.suggestions.empty()) return "";
  const DebugSuggestion& first = result.suggestions.front();
  std::string text = fmt::format("\nSuggestions, measured on {} samples{}\n", first.samples,
                                 first.held_out ? " that they were not chosen by" : " (the ones they were chosen by)");
  for (size_t i = 0; i < result.suggestions.size(); ++i) {
    text += wrapped(fmt::format("{}. {}", i + 1, suggestion_text(result.suggestions[i], result.plan.units)), 3);
  }
  return text;
}

}  // namespace

std::string DebugResult::verdict() const {
  if (outputs.empty() || samples == 0) return "Nothing was compared.";
  const DebugOutput* worst = &outputs.front();
  for (const DebugOutput& output : outputs) {
    if (output.accumulated.snr_db < worst->accumulated.snr_db) worst = &output;
  }
  std::string text = fmt::format("The quantized model's outputs have a cosine of {:.4f} with the float model's",
                                 worst->accumulated.cosine);
  if (worst->rows > 0) text += fmt::format(" and the same top answer in {:.4g} % of rows", 100.0 * worst->same_argmax);
  text += '.';
  if (suspects.empty() && suggestions.empty()) return text + " No layer loses more than rounding must cost.";
  if (!suggestions.empty()) {
    return text + fmt::format(" What helps: {}.", suggestion_text(suggestions.front(), plan.units));
  }
  if (changes_tried > 0) return text + " None of the changes that were tried helps.";
  return text + fmt::format(" The first suspect: {}", printable(suspects.front().why));
}

std::string DebugResult::to_text(const std::string& opened) const {
  std::string text = fmt::format("{} samples, {} layers; files of {} and {}\n", samples, layers.size(),
                                 format_bytes(float_bytes, plan.units), format_bytes(quantized_bytes, plan.units));
  text += outputs_text(*this) + layers_text(*this, opened) + regions_text(*this, opened) + suspects_text(*this) +
          suggestions_text(*this);
  for (const std::string& node : unmatched) text += wrapped("Not compared: " + printable(node), 2);
  for (const std::string& note : notes) text += wrapped(note, 2);
  return text + '\n' + wrapped("Verdict: " + verdict(), 2);
}

/// The form that Model Explorer reads: values by the name of a node's first output, as it numbers tensors.
std::string DebugResult::to_node_data() const {
  const auto column = [&](const char* name, const auto& value) {
    Json results = Json::object();
    for (const LayerDebug& layer : layers) {
      if (layer.subgraph != 0 || layer.node < 0) continue;
      if (const std::optional<double> number = value(layer); number && std::isfinite(*number)) {
        results[layer.name] = {{"value", *number}};
      }
    }
    Json data = {{"name", name}};
    data["results"] = std::move(results);
    data["gradient"] = Json::array();
    data["gradient"].push_back({{"stop", 0}, {"bgColor", "#ffffff"}});
    data["gradient"].push_back({{"stop", 1}, {"bgColor", "#d73027"}});
    return data;
  };
  using Number = std::optional<double>;
  Json columns = Json::array();
  columns.push_back(
      column("own error", [](const LayerDebug& l) { return l.own ? Number(l.own->lost_signal) : Number(); }));
  columns.push_back(column("total error", [](const LayerDebug& l) {
    return l.accumulated ? Number(std::min(1.0, report::relative_error(*l.accumulated))) : Number();
  }));
  columns.push_back(column("effect", [](const LayerDebug& l) { return l.effect; }));
  columns.push_back(column("bytes", [](const LayerDebug& l) {
    int64_t bytes = 0;
    for (const WeightError& weight : l.weights) bytes += weight.shape.elements();
    return Number(static_cast<double>(bytes));
  }));
  return columns.dump(1);
}

}  // namespace leadline
