// SPDX-License-Identifier: Apache-2.0
// `leadline debug`: what quantization did to a model, layer by layer.
#include "leadline/debug.h"

#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "cli/command.h"
#include "cli/job_bars.h"
#include "cli/sample_options.h"
#include "io/output_file.h"
#include "leadline/budget.h"
#include "leadline/error.h"
#include "leadline/samples.h"
#include "leadline/types.h"

namespace leadline::cli {
namespace {

constexpr const char* kDebugExamples =
    "  leadline debug model.tflite model.int8.tflite --data samples.npz\n"
    "  leadline debug model.tflite model.int8.tflite --data samples/ --report report.html\n"
    "  leadline debug model.tflite model.int8.tflite --data samples/ --report report.json\n"
    "  leadline quantize model.tflite --data samples/ --apply report.json     with its first suggestion\n"
    "  leadline debug model.tflite model.int8.tflite --plan     how much memory it needs";

void write_report(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.finish();
}

class DebugCommand final : public Command {
 public:
  explicit DebugCommand(CLI::App& program)
      : Command(program, "debug", "Compare a quantized model with its float model, layer by layer", kDebugExamples) {
    add_option("FLOAT", float_path_, "The float .tflite file").required().placeholder("");
    add_option("QUANTIZED", quantized_path_, "The quantized .tflite file").required().placeholder("");
    add_sample_options(*this, samples_, "Samples for the float model");
    add_timeout();
    add_option("--report", report_path_, "Write a page (.html), or all of it as data (.json) for quantize --apply")
        .placeholder("FILE");
    add_option("--open", opened_, "List layers and parts with this in their names, rather than one for all alike")
        .placeholder("NAME");
    add_option("--node-data", node_data_path_, "Write error and effect of each node for Model Explorer")
        .placeholder("FILE.json");
    add_option("--csv", csv_path_, "Write one line per layer").placeholder("FILE");
    add_option("--threads", options_.num_threads, "Threads; -1: all CPUs").show_default().placeholder("N");
    add_option("--memory", memory_, "Refuse to use more memory than this, such as 200MB").placeholder("SIZE");
    add_flag("--no-own-error", no_own_error_, "Only compare with the float model: half the time");
    add_flag("--equalized", options_.equalized,
             "The quantized model was made with --equalize: compare with even channels");
    add_flag("--no-effects", no_effects_,
             "Do not measure what parts of the network cost at the outputs, and try nothing");
    add_flag("--no-suggestions", no_suggestions_, "Do not try changes");
    add_flag("--plan", plan_only_, "Only print how much memory it needs");
  }

  void run() override {
    const auto start = std::chrono::steady_clock::now();
    const auto limit = memory_.empty() ? Budget::machine_default() : Budget::with_limit(memory_);
    options_.budget = limit->child();  // counts this job alone
    options_.own_error = !no_own_error_;
    options_.effects = !no_effects_;
    options_.suggestions = !no_suggestions_;
    const Model reference = Model::load(float_path_, options_.budget);
    const Model quantized = Model::load(quantized_path_, options_.budget);
    options_.max_samples = samples_.max_samples;
    DebugJob job(reference, quantized, options_);
    const std::unique_ptr<SampleSource> samples = samples_ ? samples_.open(reference, options_.budget) : nullptr;
    const JobPlan plan = job.plan(samples.get());
    show_plan(plan, plan_only_);
    if (plan_only_) return;
    require_samples(samples.get());
    JobBars bars;
    const DebugJobResult found = job.run(*samples, bars.observer());
    const DebugResult& result = found.debug;
    print_findings(found.findings);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (!csv_path_.empty()) write_report(csv_path_, result.to_csv());
    if (!report_path_.empty()) {
      const DebugRun run{float_path_, quantized_path_, samples_.data, took.count(), found.counted_peak_bytes};
      write_report(report_path_, report_path_.ends_with(".json") ? result.to_json() : result.to_html(run));
    }
    if (!node_data_path_.empty()) write_report(node_data_path_, result.to_node_data());
    if (json()) {
      fmt::print("{}\n", result.to_json());
    } else {
      fmt::print("{}", result.to_text(opened_));
      for (const std::string& path : {csv_path_, report_path_, node_data_path_}) {
        if (!path.empty()) fmt::print("\nWrote {}\n", printable(path));
      }
    }
  }

 private:
  std::string float_path_;
  std::string quantized_path_;
  SampleOptions samples_;
  std::string report_path_;
  std::string csv_path_;
  std::string node_data_path_;
  std::string memory_;
  std::string opened_;
  bool no_own_error_ = false;
  bool no_effects_ = false;
  bool no_suggestions_ = false;
  bool plan_only_ = false;
  DebugOptions options_;
};

}  // namespace

std::unique_ptr<Command> debug_command(CLI::App& program) { return std::make_unique<DebugCommand>(program); }

}  // namespace leadline::cli
