// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <utility>

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

void Command::print_json(const Json& document) { fmt::print("{}\n", document.dump(2)); }

}  // namespace leadline::cli
