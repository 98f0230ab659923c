// SPDX-License-Identifier: Apache-2.0
// `leadline quantize`: a float .tflite model to one with smaller numbers.
#include <filesystem>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/quantization.h"
#include "leadline/budget.h"
#include "leadline/names.h"

namespace leadline::cli {
namespace {

constexpr const char* kQuantizeExamples =
    "  leadline quantize model.tflite --mode dynamic\n"
    "  leadline quantize model.tflite -o small.tflite --mode int8 --data samples.npz --input-type int8\n"
    "  leadline quantize model.tflite --data samples/ --recipe recipe.json --method percentile\n"
    "  leadline quantize model.tflite --data samples.npz --strict --plan     what it would do and need";

class QuantizeCommand final : public Command {
 public:
  explicit QuantizeCommand(CLI::App& program)
      : Command(program, "quantize", "Quantize a float .tflite model", kQuantizeExamples) {
    add_option("MODEL", model_path_, "The float .tflite file").required().placeholder("");
    add_option("-o,--output", output_path_, "The quantized file; by default beside the model").placeholder("FILE");
    add_timeout();
    add_option("--mode", options_.mode, quantization_mode_names()).show_default().placeholder("MODE");
    options_.add_to(*this);
    add_option("--recipe", options_.recipe, "How to quantize which nodes: Leadline's JSON or ai-edge-quantizer's")
        .placeholder("FILE");
    add_option("--apply", options_.apply_path, "Do what a report of `leadline debug` (.json) suggests")
        .placeholder("REPORT");
    add_option("--suggestion", options_.suggestion, "Which of its suggestions").show_default().placeholder("N");
    add_option("--keep-float", options_.keep_float, "A tensor whose node stays float, or an op; as often as needed")
        .placeholder("NAME");
    add_flag("--bias-correction", options_.bias_correction,
             "Let biases compensate for the mean error of quantized weights");
    add_flag("--keep-state", options_.keep_state, "Samples are one stream: variables keep their values between them");
    add_flag("--sparsify", options_.sparsify,
             "Store weights of dense layers without their zeros, where that is smaller");
    add_flag("--ranges-only", options_.ranges_only,
             "Quantize nothing: the float model with the ranges of its tensors, for a quantizer that takes them");
    add_option("--threads", options_.threads, "Threads for calibration; -1: all CPUs").show_default().placeholder("N");
    add_option("--memory", memory_, "Refuse to use more memory than this, such as 200MB").placeholder("SIZE");
    add_flag("--plan", plan_only_, "Only print what would be done and how much memory it needs");
  }

  void run() override {
    // A count of its own, so that it can be compared with what was planned.
    const auto budget = (memory_.empty() ? Budget::machine_default() : Budget::with_limit(memory_))->child();
    std::string output = output_path_;
    if (output.empty()) {
      output = std::filesystem::path(model_path_).replace_extension(options_.mode + ".tflite").string();
    }
    quantize_and_report(Model::load(model_path_, budget), options_, {model_path_, output, plan_only_, json()});
  }

 private:
  std::string model_path_;
  std::string output_path_;
  QuantizationOptions options_;
  std::string memory_;
  bool plan_only_ = false;
};

}  // namespace

std::unique_ptr<Command> quantize_command(CLI::App& program) { return std::make_unique<QuantizeCommand>(program); }

}  // namespace leadline::cli
