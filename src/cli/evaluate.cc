// SPDX-License-Identifier: Apache-2.0
// `leadline evaluate`: how good a model's answers are on a set of samples.
#include "leadline/evaluate.h"

#include <fmt/core.h>

#include <cstdio>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/progress.h"
#include "cli/sample_options.h"
#include "leadline/budget.h"

namespace leadline::cli {
namespace {

constexpr const char* kEvaluateExamples =
    "  leadline evaluate model.tflite --data test.npz --labels labels\n"
    "  leadline evaluate model.tflite --data pictures/ --mean 127.5 --scale 0.00784\n"
    "  leadline evaluate model.int8.tflite --data test.npz --metric agreement --reference model.tflite\n"
    "  leadline evaluate model.tflite --data test.npz --plan     how much memory it needs";

class EvaluateCommand final : public Command {
 public:
  explicit EvaluateCommand(CLI::App& program)
      : Command(program, "evaluate", "Run a model over samples and measure its answers", kEvaluateExamples) {
    add_option("MODEL", model_path_, "The .tflite file").required().placeholder("");
    add_sample_options(*this, samples_, "Samples to run");
    add_label_options(*this, samples_);
    add_option("--metric", metric_, "accuracy, mse, mae, cosine or agreement (with --reference)")
        .show_default()
        .placeholder("NAME");
    add_option("--top-k", options_.top_k, "For accuracy: the label may be any of this many top answers")
        .show_default()
        .placeholder("K");
    add_option("--reference", reference_path_, "The .tflite file to compare with").placeholder("FILE");
    add_option("--output-index", options_.output, "Which output to evaluate, counted from 0")
        .show_default()
        .placeholder("N");
    add_option("--max-confusion-classes", options_.max_confusion_classes,
               "Keep the table of answers for at most this many classes; 0: no table")
        .show_default()
        .placeholder("N");
    add_flag("--per-sample", options_.per_sample, "With --json: the value of each sample too");
    options_.num_threads = -1;
    add_option("--threads", options_.num_threads, "Samples that run at the same time; -1: as many as CPUs")
        .show_default()
        .placeholder("N");
    add_option("--memory", memory_, "Refuse to use more memory than this, such as 200MB").placeholder("SIZE");
    add_flag("--plan", plan_only_, "Only print how much memory it needs");
    add_timeout();
  }

  void run() override {
    options_.metric = parse_metric(metric_);
    const auto budget = memory_.empty() ? Budget::machine_default() : Budget::with_limit(memory_);
    const Model model = Model::load(model_path_, budget);
    if (!reference_path_.empty()) options_.reference = Model::load(reference_path_, budget);
    options_.max_samples = samples_.max_samples;
    EvaluateJob job(model, options_);
    const std::unique_ptr<SampleSource> samples = samples_ || !plan_only_ ? samples_.open(model, budget) : nullptr;
    const JobPlan plan = job.plan(samples.get());
    if (plan_only_ && json()) return print_json(parse_json(plan.to_json()));
    if (!json()) {
      fmt::print("{}", plan.to_text());
      std::fflush(stdout);
    }
    if (plan_only_) return;
    const EvaluateResult result = [&] {
      const StopOnSignal stop;
      ProgressBar bar("Evaluating");
      return job.run(*samples, [&](const JobProgress& progress) {
        bar.update(progress.done, progress.total);
        return !StopOnSignal::stopped();
      });
    }();
    print_findings(result.findings);
    if (json()) return print_json(parse_json(result.to_json()));
    fmt::print("\n{}", result.to_text());
  }

 private:
  std::string model_path_;
  std::string reference_path_;
  std::string metric_ = "accuracy";
  std::string memory_;
  bool plan_only_ = false;
  SampleOptions samples_;
  EvaluateOptions options_;
};

}  // namespace

std::unique_ptr<Command> evaluate_command(CLI::App& program) { return std::make_unique<EvaluateCommand>(program); }

}  // namespace leadline::cli
