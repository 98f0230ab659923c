// SPDX-License-Identifier: Apache-2.0
// `leadline plan`: how much memory a run takes, without running.
#include "leadline/plan.h"

#include <fmt/core.h>

#include <filesystem>
#include <string>

#include "cli/command.h"
#include "cli/opened_model.h"
#include "io/output_file.h"
#include "leadline/error.h"

namespace leadline::cli {
namespace {

constexpr const char* kPlanExamples =
    "  leadline plan model.tflite\n"
    "  leadline plan model.tflite --html plan.html\n"
    "  leadline plan model.tflite --shape input=4,224,224,3 --threads 2\n"
    "  leadline plan model.tflite --memory 64MB || echo \"does not fit\"";

class PlanCommand final : public Command {
 public:
  explicit PlanCommand(CLI::App& program)
      : Command(program, "plan", "Show how much memory a run takes, without running it", kPlanExamples) {
    options_.add_to(*this);
    add_timeout();
    add_option("--html", html_path_, "Also write a page with a picture of the arena to this file").placeholder("FILE");
  }

  void run() override {
    // A plan is made whatever the limit is: it shows how much is missing.
    const std::shared_ptr<Budget> limit = options_.budget();
    OpenedModel opened(options_, nullptr, true);
    Plan plan = opened.plan();
    if (limit != nullptr) plan.units = limit->units();
    if (!html_path_.empty()) {
      OutputFile file(html_path_);
      file.write(plan.to_html(std::filesystem::path(options_.model_path).filename().string()));
      file.finish();
    }
    const bool fits = limit == nullptr || plan.peak_bytes <= limit->limit();
    if (!fits) {
      throw BudgetError(
          fmt::format("the plan needs {} ({} bytes), --memory allows {} ({} bytes)\n{}", limit->format(plan.peak_bytes),
                      plan.peak_bytes, limit->format(limit->limit()), limit->limit(), plan.to_text()),
          plan.peak_bytes, limit->limit());
    }
    if (json()) {
      Json document = {{"model", options_.model_path}};
      const Json described = parse_json(plan.to_json());
      for (const auto& [key, value] : described.members()) document[key] = value;
      print_json(document);
      return;
    }
    fmt::print("{}\n{}", printable(options_.model_path), plan.to_text());
    if (!html_path_.empty()) fmt::print("\nWrote {}\n", printable(html_path_));
  }

 private:
  ModelOptions options_;
  std::string html_path_;
};

}  // namespace

std::unique_ptr<Command> plan_command(CLI::App& program) { return std::make_unique<PlanCommand>(program); }

}  // namespace leadline::cli
