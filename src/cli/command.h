// SPDX-License-Identifier: Apache-2.0
// A subcommand: adds its options to the program and does its work. It throws leadline::Error and prints results;
// main.cc turns exceptions into messages and exit codes.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "leadline/work_limit.h"

namespace leadline::cli {

using Json = nlohmann::ordered_json;

class Command {
 public:
  /// `examples` stands at the end of the help text.
  Command(CLI::App& program, const std::string& name, const std::string& help, const std::string& examples);
  virtual ~Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  virtual void run() = 0;

  CLI::App& app() { return *app_; }
  bool json() const { return json_; }
  /// Seconds that run() may take; infinite unless --timeout was given.
  double timeout() const { return timeout_; }
  /// What the program ends with after run(): 0 unless the command says otherwise.
  int exit_code() const { return exit_code_; }

 protected:
  /// Prints a document: the one thing on standard output when --json is given.
  static void print_json(const Json& document);
  void set_exit_code(int code) { exit_code_ = code; }
  /// Adds the option --timeout.
  void add_timeout();

 private:
  CLI::App* app_;
  bool json_ = false;
  double timeout_ = kNoTimeout;
  int exit_code_ = 0;
};

std::unique_ptr<Command> bench_command(CLI::App& program);
std::unique_ptr<Command> convert_command(CLI::App& program);
std::unique_ptr<Command> debug_command(CLI::App& program);
std::unique_ptr<Command> devices_command(CLI::App& program);
std::unique_ptr<Command> doctor_command(CLI::App& program);
std::unique_ptr<Command> evaluate_command(CLI::App& program);
std::unique_ptr<Command> guard_command(CLI::App& program);
std::unique_ptr<Command> inspect_command(CLI::App& program);
std::unique_ptr<Command> ops_command(CLI::App& program);
std::unique_ptr<Command> plan_command(CLI::App& program);
std::unique_ptr<Command> postmortem_command(CLI::App& program);
std::unique_ptr<Command> quantize_command(CLI::App& program);
std::unique_ptr<Command> run_command(CLI::App& program);
std::unique_ptr<Command> tune_command(CLI::App& program);

}  // namespace leadline::cli
