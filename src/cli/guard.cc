// SPDX-License-Identifier: Apache-2.0
// `leadline guard`: runs a program under limits and reports how it ended.
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "leadline/budget.h"
#include "leadline/error.h"
#include "leadline/guard/process.h"
#include "leadline/types.h"

namespace leadline::cli {
namespace {

constexpr const char* kGuardExamples =
    "  leadline guard --memory 2GB -- python train.py\n"
    "  leadline guard --memory 2GB --timeout 3600 --json -- python train.py > report.json\n"
    "\n"
    "Exit code: that of the program; 128 + N when signal N ended it; and when the guard did:\n"
    "  122  more memory than --memory (or the system's OOM killer)\n"
    "  123  more processes than --processes\n"
    "  124  longer than --timeout\n"
    "  130  stopped by Ctrl-C or a signal to the guard\n"
    "  127  the program cannot be started";

enum GuardExit { kMemoryExit = 122, kProcessesExit = 123, kTimeoutExit = 124, kNotStarted = 127, kInterruptExit = 130 };

/// How long a program may take to end after it was asked to.
constexpr std::chrono::seconds kGrace(5);

volatile sig_atomic_t stop_signal = 0;
volatile sig_atomic_t stop_count = 0;

void on_stop(int signal) {
  stop_signal = signal;
  stop_count = stop_count + 1;
}

void install_handlers() {
  struct sigaction action{};
  action.sa_handler = on_stop;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

/// False when the reader is gone.
bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = write(fd, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR && stop_count < 2) continue;
    if (size < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(size));
  }
  return true;
}

int guard_exit_code(const guard::GuardReport& report) {
  switch (report.cause) {
    case guard::GuardCause::kExit:
      return report.exit_code;
    case guard::GuardCause::kSignal:
      return 128 + report.signal;
    case guard::GuardCause::kMemory:
      return kMemoryExit;
    case guard::GuardCause::kProcesses:
      return kProcessesExit;
    case guard::GuardCause::kTimeout:
      return kTimeoutExit;
    case guard::GuardCause::kInterrupt:
      return kInterruptExit;
  }
  return kInterruptExit;
}

/// Output of Python arrives as it is written and a crash shows its stack, unless the user has said otherwise.
std::vector<std::string> child_environment() {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) result.emplace_back(*entry);
  for (const std::string_view name : {"PYTHONUNBUFFERED", "PYTHONFAULTHANDLER"}) {
    const std::string prefix = std::string(name) + "=";
    const bool given = std::any_of(result.begin(), result.end(), [&](const auto& e) { return e.starts_with(prefix); });
    if (!given) result.push_back(prefix + "1");
  }
  return result;
}

class Guard final : public Command {
 public:
  explicit Guard(CLI::App& program)
      : Command(program, "guard", "Run a program under limits of memory and time, and report how it ended",
                kGuardExamples) {
    add_option("--memory", memory_, "Memory limit of the program and all it starts: 2GB, 1.5GiB, 50%");
    add_option("--timeout", limits_.timeout_seconds, "Time limit in seconds").non_negative();
    add_option("--processes", limits_.processes, "Limit of processes at one time (default 1024; 0: no limit)")
        .non_negative();
    add_flag("--quiet", quiet_, "Report on standard error only when the program did not exit with 0");
    add_option("COMMAND", command_, "The program and its arguments, after --").required();
  }

  void run() override;

 private:
  void supervise(guard::GuardedProcess& process);
  void print_report(const guard::GuardReport& report) const;
  static Json document(const guard::GuardReport& report, int exit_code);

  std::string memory_;
  guard::GuardLimits limits_;
  bool quiet_ = false;
  std::vector<std::string> command_;
};

void Guard::run() {
  if (!memory_.empty()) {
    limits_.memory_bytes = parse_bytes(memory_);
    limits_.units = byte_units(memory_);
  }
  if (!memory_.empty() && limits_.memory_bytes <= 0) throw Error(ErrorCode::kInvalidArgument, "--memory must not be 0");
  if (!std::isfinite(limits_.timeout_seconds)) throw Error(ErrorCode::kInvalidArgument, "--timeout must be finite");
  guard::GuardOptions options;
  options.command = command_;
  options.environment = child_environment();
  options.limits = limits_;
  options.own_session = false;  // it may read from the terminal
  options.adopt_orphans = true;
  install_handlers();
  try {
    guard::GuardedProcess process(options);
    supervise(process);
    const guard::GuardReport report = process.report();
    set_exit_code(guard_exit_code(report));
    print_report(report);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kIo) throw;
    set_exit_code(kNotStarted);
    fmt::print(stderr, "error: {}\n", error.what());
    if (json()) {
      print_json({{"error", {{"kind", "io"}, {"message", error.what()}, {"exit_code", exit_code()}}}});
    }
  }
}

void Guard::supervise(guard::GuardedProcess& process) {
  std::chrono::steady_clock::time_point patience{};
  int seen = 0;
  bool open[3] = {false, true, true};
  for (;;) {
    const guard::GuardEvent event = process.wait(0.2);
    if (event.ended) return;
    // With --json the document is the one thing on standard output.
    const int target = json() ? 2 : event.stream;
    if (event.stream != 0 && open[target]) open[target] = write_all(target, event.bytes);
    if (event.stream != 0 && !open[target]) process.send_signal(SIGPIPE);  // as if the pipe were its own
    if (stop_count > seen) {
      if (seen == 0) patience = std::chrono::steady_clock::now() + kGrace;
      seen = stop_count;
      // A Ctrl-C at the terminal has reached the program already.
      if (stop_signal != SIGINT || isatty(STDIN_FILENO) == 0) process.send_signal(stop_signal);
      if (seen > 1) process.kill();
    }
    if (seen > 0 && std::chrono::steady_clock::now() > patience) process.kill();
  }
}

Json Guard::document(const guard::GuardReport& report, int exit_code) {
  Json result = {{"cause", guard::guard_cause_name(report.cause)},
                 {"exit_code", exit_code},
                 {"signal", nullptr},
                 {"program_exit_code", nullptr},
                 {"peak_bytes", report.peak_bytes},
                 {"memory_limit_bytes", nullptr},
                 {"seconds", report.seconds},
                 {"limits_by", report.cgroup ? "cgroup" : "samples"}};
  if (report.signal != 0) result["signal"] = report.signal;
  if (report.exit_code >= 0) result["program_exit_code"] = report.exit_code;
  if (report.limits.memory_bytes > 0) result["memory_limit_bytes"] = report.limits.memory_bytes;
  result["summary"] = report.summary;
  result["advice"] = report.advice;
  result["last_lines"] = report.last_lines;
  return {{"guard", std::move(result)}};
}

void Guard::print_report(const guard::GuardReport& report) const {
  if (!quiet_ || exit_code() != 0) {
    std::string text = fmt::format("leadline guard: '{}' {}\n", printable(command_[0], true), report.summary);
    if (!report.advice.empty()) text += fmt::format("leadline guard: {}\n", report.advice);
    write_all(STDERR_FILENO, text);
  }
  if (json()) print_json(document(report, exit_code()));
}

}  // namespace

std::unique_ptr<Command> guard_command(CLI::App& program) { return std::make_unique<Guard>(program); }

}  // namespace leadline::cli
