// SPDX-License-Identifier: Apache-2.0
#include "cli/quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/printing.h"
#include "cli/progress.h"
#include "cli/samples.h"
#include "io/output_file.h"
#include "leadline/calibration.h"
#include "leadline/error.h"
#include "leadline/quantizer.h"
#include "leadline/recipe.h"

namespace leadline::cli {
namespace {

QuantizerOptions quantizer_options(const QuantizationOptions& options) {
  QuantizerOptions result;
  result.mode = parse_quantization_mode(options.mode, "--mode");
  result.input_type = parse_io_type(options.input_type, "--input-type");
  result.output_type = parse_io_type(options.output_type, "--output-type");
  result.allow_float = !options.strict;
  result.per_channel = !options.per_tensor;
  result.per_channel_dense = !options.per_tensor;
  result.calibration.method = parse_calibration_method(options.method, "--method");
  result.calibration.percentile = options.percentile;
  if (!options.recipe.empty()) result.recipe = load_recipe(options.recipe);
  result.bias_correction = options.bias_correction;
  result.equalize = options.equalize;
  result.min_weight_elements = options.min_weight_elements;
  return result;
}

/// Nodes of one op that are treated alike.
struct Group {
  int nodes = 0;
  std::string op;
  std::string becomes;
  std::string reason;
};

std::vector<Group> groups(const std::vector<QuantizedNode>& nodes) {
  std::map<std::tuple<std::string, std::string, std::string>, int> counts;
  for (const QuantizedNode& node : nodes) {
    ++counts[{node.op, quantization_mode_name(node.mode), node.reason}];
  }
  std::vector<Group> result;
  for (const auto& [key, count] : counts) {
    result.push_back({count, std::get<0>(key), std::get<1>(key), std::get<2>(key)});
  }
  std::stable_sort(result.begin(), result.end(), [](const Group& a, const Group& b) { return a.nodes > b.nodes; });
  return result;
}

/// What one step of the work takes of memory, all that is there meanwhile included.
struct Phase {
  std::string name;
  int64_t peak_bytes = 0;
  std::string detail;
  Json more;
};

/// One model on its way: made, planned, calibrated, quantized.
class QuantizationJob {
 public:
  QuantizationJob(const Model& model, const QuantizationOptions& options);

  bool calibrates() const { return calibrates_; }
  /// Memory of each phase, before any of it is taken.
  std::vector<Phase> phases() const;
  std::string memory_text() const;
  Json memory_json() const;
  /// Runs the samples, where that is needed.
  void calibrate();
  std::vector<std::byte> quantize() const;
  /// What becomes of the nodes: counts by op, and reasons.
  std::string nodes_text() const;
  Json nodes_json() const;
  int64_t sample_count() const { return samples_; }

 private:
  CalibratorOptions calibrator_options() const;

  QuantizationOptions options_;
  QuantizerOptions quantizer_options_;
  Quantizer quantizer_;
  bool calibrates_ = false;
  int64_t load_bytes_ = 0;        // of the model that is quantized: file and graph
  int64_t run_bytes_ = 0;         // of the interpreter that calibrates, the model included
  int64_t statistics_bytes_ = 0;  // what it gathers
  QuantizationPlan plan_;
  std::unique_ptr<SampleSource> source_;
  Calibration calibration_;
  std::optional<ChannelMeans> means_;  // for bias correction
  int64_t samples_ = 0;
};

QuantizationJob::QuantizationJob(const Model& model, const QuantizationOptions& options)
    : options_(options), quantizer_options_(quantizer_options(options)), quantizer_(model, quantizer_options_) {
  load_bytes_ = model.budget()->used();
  const std::vector<QuantizedNode> nodes = quantizer_.nodes();
  calibrates_ =
      std::any_of(nodes.begin(), nodes.end(), [](const QuantizedNode& node) { return is_integer(node.mode); });
  if (calibrates_) {
    if (!options_.samples) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("mode {} needs samples of what the model will see: --data samples.npz", options_.mode));
    }
    source_ = options_.samples.open(quantizer_.model());
    Calibrator probe(quantizer_.model(), calibrator_options());
    run_bytes_ = probe.interpreter().plan().peak_bytes;
    statistics_bytes_ = probe.statistics_bytes();
  }
  plan_ = quantizer_.plan();
}

CalibratorOptions QuantizationJob::calibrator_options() const {
  CalibratorOptions options;
  options.num_threads = options_.threads;
  options.histograms = needs_histograms(quantizer_options_.calibration.method);
  return options;
}

std::vector<Phase> QuantizationJob::phases() const {
  std::vector<Phase> result = {{"load", load_bytes_, "the file and its graph", {}}};
  if (calibrates_) {
    // The statistics are there twice for a moment: gathered, and handed over.
    const int64_t peak = std::max(run_bytes_, load_bytes_) + 2 * statistics_bytes_ + source_->peak_bytes();
    result.push_back({"calibrate",
                      peak,
                      fmt::format("run {}, statistics {}", format_bytes(run_bytes_), format_bytes(statistics_bytes_)),
                      {{"run_bytes", run_bytes_}, {"statistics_bytes", statistics_bytes_}}});
  }
  const int64_t held = options_.bias_correction ? run_bytes_ : load_bytes_;
  result.push_back({"quantize",
                    held + statistics_bytes_ + plan_.peak_bytes + (source_ ? source_->peak_bytes() : 0),
                    fmt::format("result {}", format_bytes(plan_.result_bytes)),
                    {{"result_bytes", plan_.result_bytes}}});
  return result;
}

std::string QuantizationJob::memory_text() const {
  Table table("lrl");
  for (const Phase& phase : phases()) table.add({phase.name, format_bytes(phase.peak_bytes), phase.detail});
  return table.text();
}

Json QuantizationJob::memory_json() const {
  Json json = Json::object();
  for (const Phase& phase : phases()) {
    json[phase.name] = phase.more.empty() ? Json::object() : phase.more;
    json[phase.name]["peak_bytes"] = phase.peak_bytes;
  }
  return json;
}

void QuantizationJob::calibrate() {
  if (!calibrates_) return;
  SampleReader reader(quantizer_.model(), *source_, {.limit = options_.samples.max_samples});
  {
    Calibrator calibrator(quantizer_.model(), calibrator_options());
    samples_ = run_samples(reader, calibrator.interpreter(), "Calibrating", [&] { calibrator.add_sample(); });
    calibration_ = calibrator.calibration();
    reader.look_at(calibration_, calibrator.first_not_finite());
  }
  print_findings(reader.findings(), true);
  if (!options_.bias_correction) return;
  means_.emplace(quantizer_.model(), options_.threads);
  reader.rewind();
  run_samples(reader, means_->interpreter(), "Correcting biases", [&] { means_->add_sample(); });
}

std::vector<std::byte> QuantizationJob::quantize() const {
  const StopOnSignal stop;
  ProgressBar bar("Quantizing");
  const auto progress = [&](int64_t done, int64_t total) {
    bar.update(done, total);
    return !StopOnSignal::stopped();
  };
  return quantizer_.quantize(calibrates_ ? &calibration_ : nullptr, means_ ? &*means_ : nullptr, progress);
}

std::string QuantizationJob::nodes_text() const {
  Table table("rlll");
  for (const Group& group : groups(quantizer_.nodes())) {
    table.add({std::to_string(group.nodes), group.op, group.becomes, group.reason});
  }
  return table.text();
}

Json QuantizationJob::nodes_json() const {
  Json json = Json::array();
  for (const QuantizedNode& node : quantizer_.nodes()) {
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

}  // namespace

void QuantizationOptions::add_to(CLI::App& app) {
  add_sample_options(app, samples, "Samples for int8 and int16x8");
  app.add_option("--input-type", input_type, io_type_names())->capture_default_str()->type_name("TYPE");
  app.add_option("--output-type", output_type, io_type_names())->capture_default_str()->type_name("TYPE");
  app.add_option("--recipe", recipe, "Which nodes are quantized how: Leadline's JSON or ai-edge-quantizer's")
      ->type_name("FILE");
  app.add_option("--method", method, "Ranges from samples: " + calibration_method_names())
      ->capture_default_str()
      ->type_name("NAME");
  app.add_option("--percentile", percentile, "Share of values inside the range, for --method percentile")
      ->capture_default_str()
      ->type_name("P");
  app.add_flag("--strict", strict, "Nodes without an integer form are an error");
  app.add_flag("--per-tensor", per_tensor, "One scale for all channels of weights");
  app.add_flag("--bias-correction", bias_correction, "Biases make up for the mean error of quantized weights");
  app.add_flag("--equalize", equalize, "Even out the channels of neighbouring convolutions before");
  app.add_option("--smallest-weight", min_weight_elements,
                 "Constants of fewer elements stay float in weight-only modes")
      ->capture_default_str()
      ->type_name("N");
}

void quantize_and_report(const Model& model, const QuantizationOptions& options, const QuantizationReport& report) {
  QuantizationJob job(model, options);
  if (!report.json) {
    fmt::print("{}: {}\n\nMemory\n{}", printable(report.model_path), format_bytes(model.file_bytes()),
               job.memory_text());
    std::fflush(stdout);
  }
  int64_t written = 0;
  if (!report.plan_only) {
    job.calibrate();
    const std::vector<std::byte> content = job.quantize();
    written = static_cast<int64_t>(content.size());
    OutputFile file(report.output_path);
    file.write(content);
    file.finish();
  }
  if (report.json) {
    Json json = {{"model", report.model_path}, {"mode", options.mode}, {"float_bytes", model.file_bytes()}};
    json["memory"] = job.memory_json();
    if (!report.plan_only) {
      json["counted_peak_bytes"] = model.budget()->peak();
      json["output"] = report.output_path;
      json["result_bytes"] = written;
      if (job.calibrates()) json["samples"] = job.sample_count();
    }
    json["nodes"] = job.nodes_json();
    fmt::print("{}\n", json.dump(2, ' ', true, Json::error_handler_t::replace));
    return;
  }
  fmt::print("\nNodes\n{}", job.nodes_text());
  if (report.plan_only) return;
  fmt::print("\n");
  if (job.calibrates()) fmt::print("Calibrated with {} samples\n", job.sample_count());
  fmt::print("Wrote {}: {}, {:.1f} % of the float model\n", printable(report.output_path), format_bytes(written),
             100.0 * static_cast<double>(written) / static_cast<double>(std::max<int64_t>(model.file_bytes(), 1)));
}

}  // namespace leadline::cli
