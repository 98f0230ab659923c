// SPDX-License-Identifier: Apache-2.0
#include "child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <stdexcept>

#include "heap.h"

namespace leadline::fuzz {
namespace {

double seconds_of(clockid_t clock) {
  timespec now{};
  if (clock_gettime(clock, &now) != 0) return 0.0;
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double cpu_of(pid_t pid) {
  clockid_t clock{};
  return clock_getcpuclockid(pid, &clock) == 0 ? seconds_of(clock) : 0.0;
}

/// Without a sanitizer a wild allocation must fail instead of making the machine swap.
void limit_memory() {
  if (sanitized()) return;
  constexpr rlim_t kMost = (rlim_t{1} << 37) + (rlim_t{4} << 30);  // the guarded heap takes addresses
  const rlimit limit{.rlim_cur = kMost, .rlim_max = kMost};
  setrlimit(RLIMIT_AS, &limit);
}

/// The line of a log that names the fault.
std::string summary_of(const std::string& log) {
  for (const char* words : {"runtime error: ", "ERROR: AddressSanitizer: ", "ERROR: LeakSanitizer"}) {
    const size_t at = log.find(words);
    if (at == std::string::npos) continue;
    const size_t start = log.rfind('\n', at) + 1;
    std::string line = log.substr(start, log.find('\n', at) - start);
    // ASan says where in its last line, LeakSanitizer in the first of ours.
    const size_t summary = log.find("SUMMARY: ");
    if (summary != std::string::npos) line = log.substr(summary, log.find('\n', summary) - summary);
    return line;
  }
  return {};
}

}  // namespace

Child::Child(double most_seconds, std::string log_path) : most_seconds_(most_seconds), log_path_(std::move(log_path)) {
  void* memory = mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory for a report");
  report_ = new (memory) Report();
}

Child::~Child() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  munmap(report_, sizeof(Report));
}

void Child::start(const std::function<void(Report&)>& work) {
  problem_.clear();
  killed_ = false;
  *report_ = Report();
  seen_number_ = UINT64_MAX;
  std::fflush(nullptr);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int log = open(log_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (log >= 0) {
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
  }
  limit_memory();
  int code = 0;
  try {
    work(*report_);
  } catch (const std::exception& error) {
    fmt::print(stderr, "fuzzer: {}\n", error.what());
    code = 3;
  }
  std::fflush(nullptr);
  _exit(code);
}

bool Child::poll() {
  if (pid_ <= 0) return true;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == pid_) {
    pid_ = 0;
    problem_ = describe(status);
    return true;
  }
  const double cpu = cpu_of(pid_);
  const double clock = seconds_of(CLOCK_MONOTONIC);
  if (report_->number != seen_number_ || report_->done != seen_done_) {
    seen_number_ = report_->number;
    seen_done_ = report_->done;
    seen_cpu_ = cpu;
    seen_clock_ = clock;
  } else if (cpu - seen_cpu_ > most_seconds_ || clock - seen_clock_ > 10 * most_seconds_) {
    killed_ = true;
    kill(pid_, SIGKILL);
  }
  return false;
}

void Child::wait() {
  while (!poll()) usleep(1000);
}

std::string Child::log() const {
  std::ifstream stream(log_path_, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string Child::describe(int status) const {
  const char* stage = stage_name(report_->stage);
  if (killed_) return fmt::format("hang: no end within {} s in {}", most_seconds_, stage);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  const std::string summary = summary_of(log());
  if (!summary.empty()) return fmt::format("sanitizer: {}", summary);
  if (WIFSIGNALED(status)) return fmt::format("death: {} in {}", strsignal(WTERMSIG(status)), stage);
  return fmt::format("death: exit code {} in {}", WEXITSTATUS(status), stage);
}

std::string exercise_apart(const TablePtr& root, uint64_t seed, const ExerciseOptions& options,
                           const std::string& log) {
  Child child(5 * options.slow_seconds, log);
  child.start([&](Report& report) {
    const std::vector<std::byte> file = write_file(root);
    const Verdict verdict = exercise(file, seed, options, report.stage);
    if (!verdict.problem.empty()) {
      report.findings = 1;
      verdict.problem.copy(report.finding[0].problem, sizeof(report.finding[0].problem) - 1);
    }
    if (leaks()) _exit(1);
  });
  child.wait();
  if (!child.problem().empty()) return child.problem();
  return child.report().findings > 0 ? child.report().finding[0].problem : "";
}

std::string fault_of(const std::string& problem) {
  std::string fault;
  for (const char c : problem.substr(0, problem.find('\''))) {
    if (!(c >= '0' && c <= '9')) fault += c;
  }
  return fault.substr(0, 160);
}

}  // namespace leadline::fuzz
