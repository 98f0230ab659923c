// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"

#include <fmt/format.h>

namespace leadline::cli {

Command::Command(CLI::App& program, const std::string& name, const std::string& help, const std::string& examples)
    : app_(program.add_subcommand(name, help)) {
  app_->footer("Examples:\n" + examples);
  app_->add_flag("--json", json_, "Print the result (or the error) as one JSON document");
}

void Command::add_timeout() {
  app_->add_option("--timeout", timeout_, "Give up after so many seconds")
      ->check(CLI::NonNegativeNumber.description(""))
      ->type_name("SECONDS");
}

void Command::print_json(const Json& document) {
  fmt::print("{}\n", document.dump(2, ' ', true, Json::error_handler_t::replace));
}

}  // namespace leadline::cli
