// SPDX-License-Identifier: Apache-2.0
// `leadline tune`: quantizes, and keeps as few nodes out of it as a target needs.
#include "leadline/tune.h"

#include <fmt/core.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cli/command.h"
#include "cli/job_bars.h"
#include "cli/printing.h"
#include "cli/quantization.h"
#include "io/output_file.h"
#include "leadline/budget.h"
#include "leadline/error.h"
#include "leadline/names.h"
#include "leadline/recipe.h"

namespace leadline::cli {
namespace {

constexpr const char* kTuneExamples =
    "  leadline tune model.tflite --data samples.npz --target 0.999\n"
    "  leadline tune model.tflite --data samples/ --metric same_top --target 0.98 --keep int16x8\n"
    "  leadline tune model.tflite --data samples.npz --save-recipe recipe.json\n"
    "  leadline tune model.tflite --plan                        how much memory it needs";

void write_result(const std::string& path, std::span<const std::byte> content) {
  OutputFile file(path);
  file.write(content);
  file.finish();
}

class TuneCommand final : public Command {
 public:
  explicit TuneCommand(CLI::App& program)
      : Command(program, "tune", "Quantize, and keep as few nodes out of it as a target needs", kTuneExamples) {
    add_option("MODEL", model_path_, "The float .tflite file").required().placeholder("");
    add_option("-o,--output", output_path_, "The quantized file; by default beside the model").placeholder("FILE");
    add_timeout();
    add_option("--mode", options_.mode, quantization_mode_names()).show_default().placeholder("MODE");
    add_option("--keep", keep_, "What becomes of kept nodes: float or a mode").show_default().placeholder("MODE");
    add_option("--metric", metric_, "Agreement with the float model, or accuracy on --labels: " + tune_metric_names())
        .show_default()
        .placeholder("NAME");
    add_option("--target", tune_.target, "The metric to reach").show_default().placeholder("VALUE");
    add_option("--max-trials", tune_.max_trials, "Measure at most this many models").show_default().placeholder("N");
    add_option("--max-seconds", tune_.max_seconds, "Search no longer, and take the best so far; 0: as long as it takes")
        .show_default()
        .placeholder("N");
    add_option("--held-out", tune_.held_out, "Prove the result on this share of the samples; 0: prove nothing")
        .show_default()
        .placeholder("SHARE");
    add_option("--front-trials", tune_.front_trials, "Measure so many more models to choose from")
        .show_default()
        .placeholder("N");
    add_option("--save-recipe", recipe_path_, "Write the recipe, for quantize --recipe").placeholder("FILE");
    options_.add_to(*this);
    add_label_options(*this, options_.samples);
    add_option("--threads", options_.threads, "Threads for runs on samples; -1: all CPUs")
        .show_default()
        .placeholder("N");
    add_option("--memory", memory_, "Refuse to use more memory than this, such as 200MB").placeholder("SIZE");
    add_flag("--plan", plan_only_, "Only print how much memory it needs");
  }

  void run() override {
    const auto budget = (memory_.empty() ? Budget::machine_default() : Budget::with_limit(memory_))->child();
    tune_.quantize = options_.parsed();
    tune_.keep = parse_quantization_mode(keep_, "--keep");
    tune_.metric = parse_tune_metric(metric_, "--metric");
    const Model model = Model::load(model_path_, budget);
    TuneJob job(model, tune_);
    const std::unique_ptr<SampleSource> samples = options_.samples ? options_.samples.open(model, budget) : nullptr;
    const JobPlan plan = job.plan({.calibration = samples.get()});
    show_plan(plan, plan_only_);
    if (plan_only_) return;
    require_samples(samples.get());
    JobBars bars;
    const TuneResult result = job.run({.calibration = samples.get()}, bars.observer());
    print_findings(result.findings);
    report(plan, result);
  }

 private:
  void report(const JobPlan& plan, const TuneResult& result) const {
    std::string output = output_path_;
    if (output.empty()) {
      output = std::filesystem::path(model_path_).replace_extension(options_.mode + ".tflite").string();
    }
    write_result(output, result.file);
    const std::string recipe = recipe_to_json(result.recipe);
    if (!recipe_path_.empty()) write_result(recipe_path_, std::as_bytes(std::span(recipe)));
    if (json()) {
      Json document = {{"model", model_path_},
                       {"output", output},
                       {"metric", metric_},
                       {"value", result.value},
                       {"target", result.target},
                       {"reached", result.reached},
                       {"kept", result.kept},
                       {"causes", result.causes},
                       {"trials", result.trials.size()},
                       {"result_bytes", result.file.size()},
                       {"counted_peak_bytes", result.counted_peak_bytes}};
      document["recipe"] = parse_json(recipe)["rules"];
      document["front"] = Json::array();
      for (const TuneTrial& trial : result.front) document["front"].push_back(trial_json(trial));
      if (const std::optional<TuneBound>& bound = result.bound) {
        document["bound"] = {{"value", bound->value},
                             {"samples", bound->samples},
                             {"lowest", bound->lowest},
                             {"share", bound->share},
                             {"confidence", kTuneConfidence}};
      }
      document["float_bytes"] = result.float_bytes;
      document["float_seconds"] = result.float_seconds;
      document["notes"] = result.notes;
      document["plan"] = parse_json(plan.to_json());
      document["findings"] = findings_json(result.findings);
      print_json(document);
      return;
    }
    fmt::print("{} {:.6g} after {} trials, target {:.6g}: {}\n", metric_, result.value, result.trials.size(),
               result.target, result.reached ? "reached" : "not reached");
    Table table("l");
    for (const std::string& name : result.kept) table.add({name});
    fmt::print("Kept as {}: {} nodes\n{}", keep_, result.kept.size(), table.text());
    print_front(plan.units, result);
    if (result.bound) fmt::print("Proven: {}\n", result.bound->text(metric_));
    for (const std::string& note : result.notes) fmt::print("{}\n", note);
    fmt::print("Wrote {}: {}\n", printable(output), format_bytes(static_cast<int64_t>(result.file.size()), plan.units));
    if (!recipe_path_.empty()) fmt::print("Wrote {}\n", printable(recipe_path_));
  }

  static Json trial_json(const TuneTrial& trial) {
    Json json = {{"value", trial.value},
                 {"file_bytes", trial.file_bytes},
                 {"seconds", trial.seconds},
                 {"keep", quantization_mode_name(trial.keep)},
                 {"kept", trial.kept}};
    json["recipe"] = parse_json(recipe_to_json(trial.recipe()))["rules"];
    return json;
  }

  /// What there is to choose from.
  void print_front(ByteUnits units, const TuneResult& result) const {
    const auto time = [](double seconds) { return seconds > 0.0 ? fmt::format("{:.3g} ms", 1e3 * seconds) : "-"; };
    Table table("rrrrl");
    table.add({metric_, "file", "a run", "kept", "as"});
    for (const TuneTrial& trial : result.front) {
      table.add({fmt::format("{:.5g}", trial.value), format_bytes(trial.file_bytes, units), time(trial.seconds),
                 fmt::format("{}", trial.kept.size()), quantization_mode_name(trial.keep)});
    }
    table.add({"float", format_bytes(result.float_bytes, units), time(result.float_seconds), "all", "float"});
    fmt::print("To choose from:\n{}", table.text());
  }

  std::string model_path_;
  std::string output_path_;
  std::string recipe_path_;
  std::string keep_ = "float";
  std::string metric_ = "cosine";
  std::string memory_;
  QuantizationOptions options_;
  TuneOptions tune_;
  bool plan_only_ = false;
};

}  // namespace

std::unique_ptr<Command> tune_command(CLI::App& program) { return std::make_unique<TuneCommand>(program); }

}  // namespace leadline::cli
