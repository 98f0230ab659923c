// SPDX-License-Identifier: Apache-2.0
#include "cli/quantization.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/job_bars.h"
#include "cli/printing.h"
#include "io/mapped_file.h"
#include "io/output_file.h"
#include "leadline/error.h"
#include "leadline/names.h"
#include "leadline/recipe.h"
#include "leadline/samples.h"

namespace leadline::cli {
namespace {

/// Nodes of one op that are treated alike.
struct Group {
  int nodes = 0;
  std::string op;
  std::string becomes;
  std::string reason;
};

std::vector<Group> groups(const std::vector<QuantizedNode>& nodes) {
  std::map<std::tuple<std::string, std::string, std::string>, int> counts;
  for (const QuantizedNode& node : nodes) ++counts[{node.op, quantization_mode_name(node.mode), node.reason}];
  std::vector<Group> result;
  for (const auto& [key, count] : counts) {
    result.push_back({count, std::get<0>(key), std::get<1>(key), std::get<2>(key)});
  }
  std::stable_sort(result.begin(), result.end(), [](const Group& a, const Group& b) { return a.nodes > b.nodes; });
  return result;
}

/// What becomes of the nodes: counts by op, and reasons.
std::string nodes_text(const std::vector<QuantizedNode>& nodes) {
  Table table("rlll");
  for (const Group& group : groups(nodes)) {
    table.add({std::to_string(group.nodes), group.op, group.becomes, group.reason});
  }
  return table.text();
}

Json nodes_json(const std::vector<QuantizedNode>& nodes) {
  Json json = Json::array();
  for (const QuantizedNode& node : nodes) {
    Json row = {{"subgraph", node.subgraph},
                {"node", node.node},
                {"op", node.op},
                {"name", node.name},
                {"mode", quantization_mode_name(node.mode)}};
    if (!node.reason.empty()) row["reason"] = node.reason;
    json.push_back(std::move(row));
  }
  return json;
}

std::string rules_text(const std::vector<RecipeRule>& unmatched) {
  std::string text;
  for (const RecipeRule& rule : unmatched) {
    text += fmt::format("An optional rule of the recipe matches no node: {}\n", printable(describe(rule)));
  }
  return text;
}

Json rules_json(const std::vector<RecipeRule>& unmatched) {
  Json json = Json::array();
  for (const RecipeRule& rule : unmatched) json.push_back(describe(rule));
  return json;
}

/// The recipe of a suggestion in a report of `leadline debug`.
RecipeDocument suggested_recipe(const std::string& path, int number) {
  Json report;
  parse_file(path, [&](std::string_view text) {
    try {
      report = parse_json(text);
    } catch (const JsonError& error) {
      throw Error(ErrorCode::kInvalidArgument, fmt::format("not JSON: {}", error.what()));
    }
  });
  const Json* suggestions = report.is_object() ? report.find("suggestions") : nullptr;
  if (suggestions == nullptr || !suggestions->is_array()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} has no suggestions: expected what `leadline debug --report FILE.json` writes", path));
  }
  if (number < 1 || static_cast<size_t>(number) > suggestions->size()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} has {} suggestions, there is no number {}", path, suggestions->size(), number));
  }
  const Json* recipe = suggestions->at(static_cast<size_t>(number) - 1).find("recipe");
  if (recipe == nullptr) throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: a suggestion without recipe", path));
  return parse_recipe(recipe->dump());
}

void write_bytes(const std::string& path, const std::vector<std::byte>& content) {
  OutputFile file(path);
  file.write(content);
  file.finish();
}

}  // namespace

void QuantizationOptions::add_to(Command& command) {
  add_sample_options(command, samples, "Samples for int8, int16x8 and --rounding comq");
  command.add_option("--input-type", input_type, io_type_names()).show_default().placeholder("TYPE");
  command.add_option("--output-type", output_type, io_type_names()).show_default().placeholder("TYPE");
  command.add_option("--method", method, "Ranges from samples: " + calibration_method_names())
      .show_default()
      .placeholder("NAME");
  command.add_option("--percentile", percentile, "Share of values inside the range, for --method percentile")
      .show_default()
      .placeholder("P");
  command.add_flag("--strict", strict, "Nodes without an integer form are an error");
  command.add_flag("--per-tensor", per_tensor, "One scale for all channels of weights");
  command.add_flag("--equalize", equalize, "First equalize the channels of neighbouring convolutions");
  command.add_option("--rounding", rounding, "How weights become integers, comq by samples: " + weight_rounding_names())
      .show_default()
      .placeholder("NAME");
  command
      .add_option("--smallest-weight", min_weight_elements,
                  "Constants of fewer elements stay float in weight-only modes")
      .show_default()
      .placeholder("N");
}

QuantizeOptions QuantizationOptions::parsed() const {
  QuantizeOptions result;
  result.mode = parse_quantization_mode(mode, "--mode");
  result.input_type = parse_io_type(input_type, "--input-type");
  result.output_type = parse_io_type(output_type, "--output-type");
  result.allow_float = !strict;
  result.per_channel = !per_tensor;
  result.per_channel_dense = !per_tensor;
  result.calibration_rule.method = parse_calibration_method(method, "--method");
  result.calibration_rule.percentile = percentile;
  result.rounding = parse_weight_rounding(rounding, "--rounding");
  result.bias_correction = bias_correction;
  result.ranges_only = ranges_only;
  result.keep_state = keep_state;
  result.sparsify = sparsify;
  result.equalize = equalize;
  result.min_weight_elements = min_weight_elements;
  result.max_samples = samples.max_samples;
  result.num_threads = threads;
  if (!recipe.empty()) apply(load_recipe(recipe), result);
  if (!apply_path.empty()) apply(suggested_recipe(apply_path, suggestion), result);
  for (const std::string& name : keep_float) result.recipe.push_back(rule_for(name, QuantizationMode::kFloat));
  return result;
}

void quantize_and_report(const Model& model, const QuantizationOptions& options, const QuantizationReport& report) {
  QuantizeJob job(model, options.parsed());
  const bool reads = options.samples && job.uses_samples();
  const std::unique_ptr<SampleSource> samples = reads ? options.samples.open(model) : nullptr;
  const JobPlan plan = job.plan(samples.get());
  if (!report.json) {
    fmt::print("{}: {}\n\n{}", printable(report.model_path), format_bytes(model.file_bytes(), plan.units),
               plan.to_text());
    std::fflush(stdout);
  }
  QuantizeResult result;
  if (report.plan_only) {
    result.nodes = job.nodes();
    result.unmatched_rules = job.unmatched_rules();
  } else {
    if (job.needs_samples() && !options.samples) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("mode {} needs samples of what the model will see: --data samples.npz", options.mode));
    }
    JobBars bars;
    result = job.run(samples.get(), bars.observer());
    write_bytes(report.output_path, result.file);
    print_findings(result.findings, true);
  }
  if (report.json) {
    Json json = {{"model", report.model_path}, {"mode", options.mode}, {"float_bytes", model.file_bytes()}};
    json["plan"] = parse_json(plan.to_json());
    if (!report.plan_only) {
      json["counted_peak_bytes"] = result.counted_peak_bytes;
      json["output"] = report.output_path;
      json["result_bytes"] = result.result_bytes;
      if (reads) json["samples"] = result.samples;
      json["findings"] = findings_json(result.findings);
    }
    json["unmatched_rules"] = rules_json(result.unmatched_rules);
    json["nodes"] = nodes_json(result.nodes);
    fmt::print("{}\n", json.dump(2));
    return;
  }
  fmt::print("\nNodes\n{}{}", nodes_text(result.nodes), rules_text(result.unmatched_rules));
  if (report.plan_only) return;
  fmt::print("\n");
  if (reads) fmt::print("Calibrated with {} samples\n", result.samples);
  fmt::print(
      "Wrote {}: {}, {:.1f} % of the float model\n", printable(report.output_path),
      format_bytes(result.result_bytes, plan.units),
      100.0 * static_cast<double>(result.result_bytes) / static_cast<double>(std::max<int64_t>(model.file_bytes(), 1)));
}

Json findings_json(const std::vector<SampleFinding>& findings) {
  Json json = Json::array();
  for (const SampleFinding& finding : findings) json.push_back(finding.message);
  return json;
}

}  // namespace leadline::cli
