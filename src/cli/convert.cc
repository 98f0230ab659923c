// SPDX-License-Identifier: Apache-2.0
// `leadline convert`: Keras models and SavedModels to .tflite.
#include "leadline/convert.h"

#include <fmt/core.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/job_bars.h"
#include "cli/quantization.h"
#include "leadline/budget.h"
#include "leadline/error.h"
#include "leadline/model.h"
#include "leadline/names.h"
#include "leadline/types.h"

namespace leadline::cli {
namespace {

constexpr const char* kConvertExamples =
    "  leadline convert model.keras -o model.tflite\n"
    "  leadline convert model.h5 -o model.tflite --memory 200MB\n"
    "  leadline convert model.keras --plan          what it would take\n"
    "  leadline convert saved_model/ --signature serving_default\n"
    "  leadline convert model.keras --quantize int8 --data samples.npz";

class ConvertCommand final : public Command {
 public:
  explicit ConvertCommand(CLI::App& program)
      : Command(program, "convert", "Convert a Keras model (.keras, .h5) or a SavedModel to .tflite",
                kConvertExamples) {
    add_option("MODEL", model_path_, "The model: .keras, a whole-model .h5, or the directory of a SavedModel")
        .required();
    add_option("-o,--output", output_path_, "The .tflite file; by default beside the model").placeholder("FILE");
    add_timeout();
    add_option("--signature", options_.signature_keys, "Signatures of a SavedModel to convert; by default all")
        .placeholder("KEY");
    quantization_.mode.clear();  // none unless it is asked for
    add_option("--quantize", quantization_.mode, "Also quantize: " + quantization_mode_names()).placeholder("MODE");
    quantization_.add_to(*this);
    add_option("--recipe", quantization_.recipe, "How to quantize which nodes: Leadline's JSON or ai-edge-quantizer's")
        .placeholder("FILE");
    add_option("--keep-float", quantization_.keep_float,
               "A tensor whose node stays float, or an op; as often as needed")
        .placeholder("NAME");
    add_flag("--bias-correction", quantization_.bias_correction,
             "Let biases compensate for the mean error of quantized weights");
    add_flag("--allow-custom-ops", options_.conversion.allow_custom_ops,
             "SavedModels: turn ops without a conversion into custom ops");
    add_flag("--select-tf-ops", options_.conversion.select_tf_ops,
             "Keep ops without a conversion as TensorFlow's own (Flex) ops, many of which Leadline runs");
    add_option("--without-pass", options_.conversion.disabled_passes,
               "Skip this pass over the graph, or all (an unknown name lists them)")
        .placeholder("NAME")
        .repeatable();
    add_option("--memory", memory_, "Refuse to use more memory than this, such as 200MB").placeholder("SIZE");
    add_flag("--plan,--dry-run", plan_only_, "Only print what would be written and how much memory it needs");
  }

  void run() override {
    std::shared_ptr<Budget> budget;
    if (!memory_.empty()) budget = Budget::with_limit(memory_);
    std::filesystem::path beside(model_path_);
    if (!beside.has_filename()) beside = beside.parent_path();  // of a directory
    const std::string output = output_path_.empty() ? beside.replace_extension(".tflite").string() : output_path_;
    options_.budget = budget;
    ConvertJob convert(model_path_, options_);
    if (!quantization_.mode.empty()) return convert_quantized(convert, budget, output);
    const ConversionPlan plan = convert.converter().plan();
    const JobPlan job = convert.plan();
    if (!json()) print_plan(output, plan, job);
    if (!plan_only_) {
      JobBars bars;
      convert.run_to_file(output, bars.observer());
    }
    if (json()) {
      print_json({{"model", model_path_},
                  {"output", output},
                  {"written", !plan_only_},
                  {"result_bytes", plan.result_bytes},
                  {"peak_bytes", plan.file_peak_bytes},
                  {"nodes", plan.nodes},
                  {"tensors", plan.tensors},
                  {"plan", parse_json(job.to_json())}});
    } else if (!plan_only_) {
      fmt::print("Wrote {}\n", printable(output));
    }
  }

 private:
  void print_plan(const std::string& output, const ConversionPlan& plan, const JobPlan& job) const {
    fmt::print("Reads  {}\n", printable(model_path_));
    fmt::print("Writes {}: {}, {} nodes, {} tensors\n", printable(output), format_bytes(plan.result_bytes, job.units),
               plan.nodes, plan.tensors);
    fmt::print("{}", job.to_text());
    std::fflush(stdout);
  }

  void convert_quantized(ConvertJob& convert, const std::shared_ptr<Budget>& budget, const std::string& output) const {
    const auto content = std::make_shared<const std::vector<std::byte>>(convert.run().file);
    quantize_and_report(Model::from_bytes(*content, content, budget), quantization_,
                        {model_path_, output, plan_only_, json()});
  }

  std::string model_path_;
  std::string output_path_;
  QuantizationOptions quantization_;
  ConvertOptions options_;
  std::string memory_;
  bool plan_only_ = false;
};

}  // namespace

std::unique_ptr<Command> convert_command(CLI::App& program) { return std::make_unique<ConvertCommand>(program); }

}  // namespace leadline::cli
