// SPDX-License-Identifier: Apache-2.0
// `leadline debug`: what quantization did to a model, layer by layer.
#include "leadline/debug.h"

#include <fmt/format.h>

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

constexpr const char* kExamples =
    "  leadline debug model.tflite model.int8.tflite --data samples.npz\n"
    "  leadline debug model.tflite model.int8.tflite --data samples/ --report report.html\n"
    "  leadline debug model.tflite model.int8.tflite --plan     how much memory it needs";

void write_file(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.finish();
}

class DebugCommand final : public Command {
 public:
  explicit DebugCommand(CLI::App& program)
      : Command(program, "debug", "Compare a quantized model with its float model, layer by layer", kExamples) {
    add_option("FLOAT", float_path_, "The float .tflite file").required().placeholder("");
    add_option("QUANTIZED", quantized_path_, "The quantized .tflite file").required().placeholder("");
    add_sample_options(*this, samples_, "Samples for the float model");
    add_timeout();
    add_option("--report", report_path_, "Write an HTML report").placeholder("FILE.html");
    add_option("--csv", csv_path_, "Write one line per layer").placeholder("FILE");
    add_option("--threads", options_.num_threads, "Threads; -1: all CPUs").show_default().placeholder("N");
    add_option("--memory", memory_, "Refuse to use more memory than this, such as 200MB").placeholder("SIZE");
    add_flag("--no-own-error", no_own_error_, "Only compare with the float model: half the time");
    add_flag("--equalized", options_.equalized,
             "The quantized model was made with --equalize: compare with even channels");
    add_flag("--plan", plan_only_, "Only print how much memory it needs");
  }

  void run() override {
    const auto start = std::chrono::steady_clock::now();
    const auto limit = memory_.empty() ? Budget::machine_default() : Budget::with_limit(memory_);
    options_.budget = limit->child();  // counts this job alone
    options_.own_error = !no_own_error_;
    const Model reference = Model::load(float_path_, options_.budget);
    const Model quantized = Model::load(quantized_path_, options_.budget);
    options_.max_samples = samples_.max_samples;
    DebugJob job(reference, quantized, options_);
    const std::unique_ptr<SampleSource> samples = samples_ ? samples_.open(reference, options_.budget) : nullptr;
    const JobPlan plan = job.plan(samples.get());
    if (!json()) {
      fmt::print("{}\n", plan.to_text());
      std::fflush(stdout);
    }
    if (plan_only_) {
      if (json()) fmt::print("{}\n", plan.to_json());
      return;
    }
    if (samples == nullptr) {
      throw Error(ErrorCode::kInvalidArgument, "no samples to run: add --data samples.npz, or --plan to only plan");
    }
    JobBars bars;
    const DebugJobResult found = job.run(*samples, bars.observer());
    const DebugResult& result = found.debug;
    print_findings(found.findings);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (!csv_path_.empty()) write_file(csv_path_, result.to_csv());
    if (!report_path_.empty()) {
      write_file(report_path_,
                 result.to_html({float_path_, quantized_path_, samples_.data, took.count(), found.counted_peak_bytes}));
    }
    if (json()) {
      fmt::print("{}\n", result.to_json());
    } else {
      fmt::print("{}", result.to_text());
      for (const std::string& path : {csv_path_, report_path_}) {
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
  std::string memory_;
  bool no_own_error_ = false;
  bool plan_only_ = false;
  DebugOptions options_;
};

}  // namespace

std::unique_ptr<Command> debug_command(CLI::App& program) { return std::make_unique<DebugCommand>(program); }

}  // namespace leadline::cli
