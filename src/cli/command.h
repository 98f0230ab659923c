// SPDX-License-Identifier: Apache-2.0
// The program and its commands. A command adds its options to the program and does its work. It throws leadline::Error
// and prints results; main.cc turns exceptions into messages and exit codes.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "io/json.h"
#include "leadline/work_limit.h"

// CLI11, which parses the command line, takes a compiler three seconds in every file that sees it: only
// command.cc does.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace leadline {
class SampleSource;
struct JobPlan;
}  // namespace leadline

namespace leadline::cli {

/// What the program ends with.
enum ExitCode { kOk = 0, kRuntimeError = 1, kUsage = 2, kModelInvalid = 3, kOverBudget = 4, kIoError = 5 };

/// What is to be said about an option beside its name and its help.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option& required();
  /// What stands for the value in the help text.
  Option& placeholder(const std::string& name);
  /// The help text shows the value that the variable has now.
  Option& show_default();
  Option& range(int64_t lowest, int64_t highest);
  Option& non_negative();
  Option& one_of(std::vector<std::string> values);
  /// The option may be given several times, with one value each.
  Option& repeatable();
  /// Several values can be given at once.
  Option& separated_by(char separator);

 private:
  CLI::Option* option_;
};

class Command {
 public:
  /// `examples` stands at the end of the help text.
  Command(CLI::App& program, const std::string& name, const std::string& help, const std::string& examples);
  virtual ~Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  virtual void run() = 0;

  /// Adds an option such as "-o,--output", or an argument such as "MODEL", whose value goes to a variable.
  Option add_option(const std::string& names, std::string& value, const std::string& help);
  Option add_option(const std::string& names, std::vector<std::string>& values, const std::string& help);
  Option add_option(const std::string& names, std::vector<float>& values, const std::string& help);
  Option add_option(const std::string& names, int& value, const std::string& help);
  Option add_option(const std::string& names, int64_t& value, const std::string& help);
  Option add_option(const std::string& names, uint64_t& value, const std::string& help);
  Option add_option(const std::string& names, double& value, const std::string& help);
  /// Adds an option without a value, which sets the variable; one that begins with '!' clears it.
  Option add_flag(const std::string& names, bool& value, const std::string& help);

  CLI::App& app() { return *app_; }
  bool json() const { return json_; }
  /// Seconds that run() may take; infinite unless --timeout was given.
  double timeout() const { return timeout_; }
  /// What the program ends with after run(): 0 unless the command says otherwise.
  int exit_code() const { return exit_code_; }

 protected:
  /// Prints a document: the one thing on standard output when --json is given.
  static void print_json(const Json& document);
  /// Prints what a job will take, before it starts; with --json only where that is all that was asked for.
  void show_plan(const JobPlan& plan, bool plan_only) const;
  /// Throws unless there are samples for a job that is to run.
  static void require_samples(const SampleSource* samples);
  void set_exit_code(int code) { exit_code_ = code; }
  /// Adds the option --timeout.
  void add_timeout();

 private:
  CLI::App* app_;
  bool json_ = false;
  double timeout_ = kNoTimeout;
  int exit_code_ = 0;
};

/// The command line does not fit the program's options.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The command line as a whole.
class Program {
 public:
  Program(const std::string& about, const std::string& footer);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void add(std::unique_ptr<Command> (*make)(CLI::App& program));
  /// The command that the arguments ask for, with its options set. Null when there is none to run: what was asked for,
  /// help or the version, is printed, and exit_code() is what to end with. Throws UsageError.
  Command* parse(int argc, char** argv);
  int exit_code() const { return exit_code_; }

 private:
  void print_help(const std::string& command) const;

  std::unique_ptr<CLI::App> app_;
  std::vector<std::unique_ptr<Command>> commands_;
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
std::unique_ptr<Command> kernel_command(CLI::App& program);
std::unique_ptr<Command> ops_command(CLI::App& program);
std::unique_ptr<Command> plan_command(CLI::App& program);
std::unique_ptr<Command> postmortem_command(CLI::App& program);
std::unique_ptr<Command> quantize_command(CLI::App& program);
std::unique_ptr<Command> run_command(CLI::App& program);
std::unique_ptr<Command> tune_command(CLI::App& program);

}  // namespace leadline::cli
