// SPDX-License-Identifier: Apache-2.0
#include "leadline/guard/process.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <limits>
#include <string>
#include <thread>

#include "core/cgroup.h"
#include "leadline/error.h"

namespace leadline::guard {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

struct Ended {
  GuardReport report;
  std::string output[3];
};

Ended run_to_end(GuardedProcess& process) {
  Ended result;
  for (;;) {
    GuardEvent event = process.wait(60);
    if (event.stream != 0) result.output[event.stream] += event.bytes;
    if (event.ended) break;
  }
  result.report = process.report();
  return result;
}

Ended run_shell(const std::string& script, GuardLimits limits = {}) {
  GuardedProcess process({.command = {"sh", "-c", script}, .environment = {}, .limits = limits, .inherited = {}});
  return run_to_end(process);
}

const pid_t kRun = getpid();

/// Seconds to sleep that no other run of these tests sleeps: a process of this one is known by them.
std::string nap(int number) { return std::to_string(7380 + number) + "." + std::to_string(kRun); }

/// Processes, zombies aside, that sleep nap(number).
int count_naps(int number) {
  const std::string word = std::string("sleep") + '\0' + nap(number) + '\0';
  int count = 0;
  DIR* proc = opendir("/proc");
  while (const dirent* entry = readdir(proc)) {
    const std::string folder = std::string("/proc/") + entry->d_name;
    const std::optional<std::string> line = read_text_file(folder + "/cmdline");
    if (line && line->find(word) != std::string::npos) ++count;
  }
  closedir(proc);
  return count;
}

int open_descriptors() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

TEST(Guard, TellsTheExitCodeAndPassesBothStreams) {
  const Ended ended = run_shell("echo out; echo err >&2; exit 7");
  EXPECT_TRUE(ended.report.ended);
  EXPECT_EQ(ended.report.cause, GuardCause::kExit);
  EXPECT_EQ(ended.report.exit_code, 7);
  EXPECT_EQ(ended.report.signal, 0);
  EXPECT_EQ(ended.output[1], "out\n");
  EXPECT_EQ(ended.output[2], "err\n");
  EXPECT_EQ(ended.report.last_lines.size(), 2U);
  EXPECT_FALSE(ended.report.advice.empty());
}

TEST(Guard, ASuccessNeedsNoAdvice) {
  const Ended ended = run_shell("true");
  EXPECT_EQ(ended.report.exit_code, 0);
  EXPECT_TRUE(ended.report.advice.empty());
}

TEST(Guard, NamesTheSignal) {
  for (const int signal : {SIGSEGV, SIGABRT, SIGILL, SIGBUS, SIGFPE, SIGKILL, SIGTERM}) {
    const Ended ended = run_shell("kill -" + std::to_string(signal) + " $$");
    EXPECT_EQ(ended.report.cause, GuardCause::kSignal) << signal;
    EXPECT_EQ(ended.report.signal, signal);
    EXPECT_EQ(ended.report.exit_code, -1);
    EXPECT_FALSE(ended.report.advice.empty());
  }
}

TEST(Guard, KillsAtTheTimeLimit) {
  const Ended ended = run_shell("echo started; sleep 1000", {.timeout_seconds = 0.3});
  EXPECT_EQ(ended.report.cause, GuardCause::kTimeout);
  EXPECT_EQ(ended.report.signal, SIGKILL);
  EXPECT_GE(ended.report.seconds, 0.3);
  EXPECT_LT(ended.report.seconds, 5.0);
  EXPECT_EQ(ended.output[1], "started\n");
}

// Each round doubles a variable of the shell's.
constexpr const char* kGrow = "x=0123456789abcdef; while :; do x=$x$x; done";

TEST(Guard, KillsAtTheMemoryLimit) {
  const Ended ended = run_shell(kGrow, {.memory_bytes = 100 * kMiB, .timeout_seconds = 60});
  EXPECT_EQ(ended.report.cause, GuardCause::kMemory) << ended.report.summary;
  EXPECT_GT(ended.report.peak_bytes, 100 * kMiB);
}

TEST(Guard, TheMemoryLimitIsThatOfTheWholeTree) {
  const std::string child = "(x=0123456789abcdef; while [ ${#x} -lt 20000000 ]; do x=$x$x; done; sleep 1000) &";
  std::string script;
  for (int i = 0; i < 5; ++i) script += child;
  const Ended ended = run_shell(script + " wait", {.memory_bytes = 100 * kMiB, .timeout_seconds = 60});
  EXPECT_EQ(ended.report.cause, GuardCause::kMemory) << ended.report.summary;
}

TEST(Guard, KillsAtTheProcessLimit) {
  const Ended ended = run_shell("while :; do sleep " + nap(1) + " & done", {.processes = 20, .timeout_seconds = 60});
  EXPECT_EQ(ended.report.cause, GuardCause::kProcesses) << ended.report.summary;
  EXPECT_EQ(count_naps(1), 0);
}

TEST(Guard, NothingOfTheTreeStays) {
  // In the background; in a session of its own; orphaned by a shell that is gone.
  const std::string script = "n=" + nap(2) + "; sleep $n & setsid sleep $n & " +
                             "n=$n sh -c 'setsid sleep $n >/dev/null 2>&1 </dev/null & exit'; sleep 0.2; ";
  EXPECT_EQ(run_shell(script + "exit 3").report.exit_code, 3);
  EXPECT_EQ(count_naps(2), 0);
  EXPECT_EQ(run_shell(script + "kill -SEGV $$").report.signal, SIGSEGV);
  EXPECT_EQ(count_naps(2), 0);
  EXPECT_EQ(run_shell(script + "sleep $n", {.timeout_seconds = 0.5}).report.cause, GuardCause::kTimeout);
  EXPECT_EQ(count_naps(2), 0);
}

TEST(Guard, TheDestructorKills) {
  {
    GuardedProcess process(
        {.command = {"sh", "-c", "sleep " + nap(3) + " & sleep " + nap(3)}, .environment = {}, .inherited = {}});
    while (process.processes() < 3) usleep(1000);
  }
  EXPECT_EQ(count_naps(3), 0);
}

TEST(Guard, TheEndOfTheCallerIsTheEndOfTheChild) {
  const pid_t caller = fork();
  if (caller == 0) {
    GuardedProcess process({.command = {"sleep", nap(4)}, .environment = {}, .inherited = {}});
    while (count_naps(4) == 0) usleep(1000);
    ::kill(getpid(), SIGKILL);
  }
  waitpid(caller, nullptr, 0);
  for (int i = 0; i < 1000 && count_naps(4) > 0; ++i) usleep(2000);
  EXPECT_EQ(count_naps(4), 0);
}

TEST(Guard, MuchOutputPassesAndItsEndIsKept) {
  GuardedProcess process(
      {.command = {"sh", "-c", "head -c 100000000 /dev/zero; echo; echo last"}, .environment = {}, .inherited = {}});
  size_t bytes = 0;
  GuardEvent event;
  do {
    event = process.wait(60);
    bytes += event.bytes.size();
  } while (!event.ended);
  EXPECT_EQ(bytes, 100000006U);
  EXPECT_EQ(process.report().last_lines.back(), "last");
}

TEST(Guard, InterruptIsASignalThatTheChildMayHandle) {
  GuardedProcess process({.command = {"sh", "-c", "trap 'exit 9' INT; echo ready; while :; do sleep 0.01; done"},
                          .environment = {},
                          .inherited = {}});
  while (process.wait(60).stream == 0) {
  }
  process.interrupt();
  EXPECT_EQ(run_to_end(process).report.exit_code, 9);
}

TEST(Guard, TheClockRunsDuringCallsOnly) {
  GuardedProcess process({.command = {"sh", "-c", "echo one; sleep 1000"},
                          .environment = {},
                          .limits = {.timeout_seconds = 0.2},
                          .inherited = {}});
  process.end_call();
  while (process.wait(60).stream == 0) {
  }
  EXPECT_EQ(process.report().last_lines.size(), 1U);
  usleep(300000);
  EXPECT_FALSE(process.report().ended);
  process.start_call(0.1);
  EXPECT_EQ(run_to_end(process).report.cause, GuardCause::kTimeout);
  EXPECT_TRUE(process.report().last_lines.empty());
}

TEST(Guard, AProgramThatIsNotThereIsAnError) {
  const int before = open_descriptors();
  EXPECT_THROW(GuardedProcess({.command = {"leadline-no-such-program"}, .environment = {}, .inherited = {}}), Error);
  EXPECT_THROW(GuardedProcess({.command = {"/etc/passwd"}, .environment = {}, .inherited = {}}), Error);
  EXPECT_THROW(GuardedProcess({.command = {}, .environment = {}, .inherited = {}}), Error);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Guard, ManyRunsLeaveNoDescriptorAndNoZombie) {
  run_shell("true");
  const int before = open_descriptors();
  for (int i = 0; i < 30; ++i) run_shell("exit 1");
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(Guard, DescriptorsOfTheCallerAreNotInherited) {
  const int leaked = dup(0);  // without close-on-exec
  const std::string script = "test -e /proc/self/fd/" + std::to_string(leaked);
  EXPECT_EQ(run_shell(script).report.exit_code, 1);
  GuardedProcess process({.command = {"sh", "-c", script}, .environment = {}, .inherited = {leaked}});
  EXPECT_EQ(run_to_end(process).report.exit_code, 0);
  close(leaked);
}

TEST(Guard, OtherThreadsMayAskInterruptAndKill) {
  for (int round = 0; round < 3; ++round) {
    GuardedProcess process({.command = {"sh", "-c", "trap '' INT; while :; do echo x; sleep 0.01; done"},
                            .environment = {},
                            .limits = {.memory_bytes = 500 * kMiB, .timeout_seconds = 60},
                            .inherited = {}});
    while (process.wait(60).stream == 0) {  // from here on it is deaf to SIGINT
    }
    std::atomic<bool> done = false;
    std::thread asking([&] {
      while (!done) {
        process.report();
        process.resident_bytes();
        process.processes();
      }
    });
    std::thread calling([&] {
      for (int i = 0; i < 20; ++i) {
        process.interrupt();
        process.start_call(50);
        usleep(3000);
        process.end_call();
      }
      process.kill();
    });
    const Ended ended = run_to_end(process);
    done = true;
    asking.join();
    calling.join();
    EXPECT_EQ(ended.report.cause, GuardCause::kInterrupt) << ended.report.summary;
  }
}

TEST(Guard, OddTimesAndLimitsAreHarmless) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  GuardedProcess process({.command = {"sh", "-c", "sleep 0.1; exit 4"},
                          .environment = {},
                          .limits = {.memory_bytes = std::numeric_limits<int64_t>::max(), .timeout_seconds = kInfinity},
                          .inherited = {}});
  EXPECT_FALSE(process.wait(kNan).ended);
  EXPECT_FALSE(process.wait(-5).ended);
  process.start_call(kNan);
  EXPECT_EQ(run_to_end(process).report.exit_code, 4);
  EXPECT_THROW(GuardedProcess({.command = {"true"}, .environment = {}, .limits = {.timeout_seconds = kNan}}), Error);
}

}  // namespace
}  // namespace leadline::guard
