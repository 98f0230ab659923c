// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <limits>
#include <utility>

#include "leadline/error.h"
#include "leadline/job_plan.h"
#include "leadline/samples.h"
#include "leadline/version.h"

namespace leadline::cli {
namespace {

/// CLI11's own words for these name the largest double with all of its digits, and a text as a number out of range.
template <typename Number>
CLI::Validator numbers(Number lowest, Number highest, const std::string& expected) {
  return CLI::Validator(
      [=](std::string& text) {
        Number value{};
        const bool fits = CLI::detail::lexical_cast(text, value) && value >= lowest && value <= highest;
        return fits ? std::string() : fmt::format("expected {}, got '{}'", expected, text);
      },
      "");
}

}  // namespace

Option& Option::required() {
  option_->required();
  return *this;
}

Option& Option::placeholder(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option& Option::show_default() {
  option_->capture_default_str();
  return *this;
}

Option& Option::range(int64_t lowest, int64_t highest) {
  option_->check(numbers(lowest, highest, fmt::format("a whole number from {} to {}", lowest, highest)));
  return *this;
}

Option& Option::non_negative() {
  option_->check(numbers(0.0, std::numeric_limits<double>::max(), "a number of at least 0"));
  return *this;
}

Option& Option::one_of(std::vector<std::string> values) {
  option_->check(CLI::IsMember(std::move(values)).description(""));
  return *this;
}

Option& Option::repeatable() {
  option_->expected(1)->take_all();
  return *this;
}

Option& Option::separated_by(char separator) {
  option_->delimiter(separator);
  return *this;
}

Command::Command(CLI::App& program, const std::string& name, const std::string& help, const std::string& examples)
    : app_(program.add_subcommand(name, help)) {
  app_->footer("Examples:\n" + examples);
  add_flag("--json", json_, "Print the result (or the error) as one JSON document");
}

Option Command::add_option(const std::string& names, std::string& value, const std::string& help) {
  return Option(app_->add_option(names, value, help));
}

Option Command::add_option(const std::string& names, std::vector<std::string>& values, const std::string& help) {
  return Option(app_->add_option(names, values, help));
}

Option Command::add_option(const std::string& names, std::vector<float>& values, const std::string& help) {
  return Option(app_->add_option(names, values, help));
}

Option Command::add_option(const std::string& names, int& value, const std::string& help) {
  return Option(app_->add_option(names, value, help));
}

Option Command::add_option(const std::string& names, int64_t& value, const std::string& help) {
  return Option(app_->add_option(names, value, help));
}

Option Command::add_option(const std::string& names, uint64_t& value, const std::string& help) {
  return Option(app_->add_option(names, value, help));
}

Option Command::add_option(const std::string& names, double& value, const std::string& help) {
  return Option(app_->add_option(names, value, help));
}

Option Command::add_flag(const std::string& names, bool& value, const std::string& help) {
  return Option(app_->add_flag(names, value, help));
}

void Command::add_timeout() {
  add_option("--timeout", timeout_, "Stop after SECONDS").non_negative().placeholder("SECONDS");
}

void Command::show_plan(const JobPlan& plan, bool plan_only) const {
  if (json()) {
    if (plan_only) fmt::print("{}\n", plan.to_json());
    return;
  }
  fmt::print("{}\n", plan.to_text());
  std::fflush(stdout);
}

void Command::require_samples(const SampleSource* samples) {
  if (samples != nullptr) return;
  throw Error(ErrorCode::kInvalidArgument, "no samples to run: add --data samples.npz, or --plan to only plan");
}

void Command::print_json(const Json& document) { fmt::print("{}\n", document.dump(2)); }

Program::Program(const std::string& about, const std::string& footer)
    : app_(std::make_unique<CLI::App>(about, "leadline")) {
  app_->set_version_flag("--version", std::string("leadline ") + kVersion, "Print the version");
  app_->set_help_flag("-h,--help", "Print this help");
  app_->footer(footer);
  app_->require_subcommand(0, 1);
  app_->get_formatter()->column_width(28);
}

Program::~Program() = default;

void Program::add(std::unique_ptr<Command> (*make)(CLI::App& program)) { commands_.push_back(make(*app_)); }

void Program::print_help(const std::string& about) const {
  if (about.empty()) return fmt::print("{}", app_->help());
  for (const auto& command : commands_) {
    if (command->app().get_name() == about) return fmt::print("{}", command->app().help(app_->get_name()));
  }
  throw Error(ErrorCode::kInvalidArgument, fmt::format("unknown command '{}'; see leadline --help", about));
}

Command* Program::parse(int argc, char** argv) {
  std::string help_about;
  CLI::App* help = app_->add_subcommand("help", "Print the help of a command");
  help->add_option("COMMAND", help_about, "Which command");
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    exit_code_ = app_->exit(success);
    return nullptr;
  } catch (const CLI::ParseError& error) {
    const std::string command = app_->get_subcommands().empty() ? "" : app_->get_subcommands()[0]->get_name() + " ";
    throw UsageError(fmt::format("{}; see leadline {}--help", error.what(), command));
  }
  if (help->parsed()) {
    print_help(help_about);
    return nullptr;
  }
  for (const auto& command : commands_) {
    if (command->app().parsed()) return command.get();
  }
  fmt::print(stderr, "{}", app_->help());
  exit_code_ = kUsage;
  return nullptr;
}

}  // namespace leadline::cli
