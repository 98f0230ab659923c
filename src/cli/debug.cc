// SPDX-License-Identifier: Apache-2.0
// `leadline debug`: what quantization did to a model, layer by layer.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "cli/command.h"
#include "cli/sample_options.h"
#include "cli/samples.h"
#include "io/output_file.h"
#include "leadline/budget.h"
#include "leadline/debugger.h"
#include "leadline/error.h"
#include "leadline/quantizer.h"
#include "leadline/types.h"

namespace leadline::cli {
namespace {

constexpr const char* kExamples =
    "  leadline debug model.tflite model.int8.tflite --data samples.npz\n"
    "  leadline debug model.tflite model.int8.tflite --data samples/ --report report.html\n"
    "  leadline debug model.tflite model.int8.tflite --plan     how much memory it takes";

void write_file(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.finish();
}

class DebugCommand final : public Command {
 public:
  explicit DebugCommand(CLI::App& program)
      : Command(program, "debug", "Compare a quantized model with its float model, layer by layer", kExamples) {
    app().add_option("FLOAT", float_path_, "The float .tflite file")->required()->type_name("");
    app().add_option("QUANTIZED", quantized_path_, "The quantized .tflite file")->required()->type_name("");
    add_sample_options(app(), samples_, "Samples for the float model");
    add_timeout();
    app().add_option("--report", report_path_, "Write a page for a browser")->type_name("FILE.html");
    app().add_option("--csv", csv_path_, "Write one line per layer")->type_name("FILE");
    app().add_option("--threads", options_.num_threads, "Threads; -1: all CPUs")->capture_default_str()->type_name("N");
    app().add_option("--memory", memory_, "Refuse to take more than this, such as 200MB")->type_name("SIZE");
    app().add_flag("--no-own-error", no_own_error_, "Only compare with the float model: half the time");
    app().add_flag("--equalized", equalized_,
                   "The quantized model was made with --equalize: compare with even channels");
    app().add_flag("--plan", plan_only_, "Only say what memory it takes");
  }

  void run() override {
    const auto start = std::chrono::steady_clock::now();
    const auto limit = memory_.empty() ? Budget::machine_default() : Budget::with_limit(parse_bytes(memory_));
    options_.budget = limit->child();  // counts this job alone
    options_.own_error = !no_own_error_;
    Model reference = Model::load(float_path_, options_.budget);
    if (equalized_) {
      QuantizerOptions equalizing;
      equalizing.equalize = true;
      equalizing.budget = options_.budget;
      reference = Quantizer(reference, equalizing).model();
    }
    const Model quantized = Model::load(quantized_path_, options_.budget);
    QuantizationDebugger debugger(reference, quantized, options_);
    const DebugPlan plan = debugger.plan();
    if (!json()) {
      fmt::print("{}\n", plan.to_text());
      std::fflush(stdout);
    }
    if (plan_only_) {
      if (json()) print_json({{"peak_bytes", plan.peak_bytes}, {"layers", plan.layers}});
      return;
    }
    if (!samples_) {
      throw Error(ErrorCode::kInvalidArgument, "no samples to run: add --data samples.npz, or --plan to only plan");
    }
    const std::unique_ptr<SampleSource> source = samples_.open(reference, options_.budget);
    SampleReader reader(reference, *source, {.limit = samples_.max_samples});
    run_samples(reader, debugger.interpreter(), "Debugging", [&] { debugger.add_sample(); });
    print_findings(reader.findings());
    const DebugResult result = debugger.result();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (!csv_path_.empty()) write_file(csv_path_, result.to_csv());
    if (!report_path_.empty()) {
      write_file(report_path_,
                 result.to_html({float_path_, quantized_path_, samples_.data, took.count(), options_.budget->peak()}));
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
  bool equalized_ = false;
  bool plan_only_ = false;
  DebuggerOptions options_;
};

}  // namespace

std::unique_ptr<Command> debug_command(CLI::App& program) { return std::make_unique<DebugCommand>(program); }

}  // namespace leadline::cli
