// SPDX-License-Identifier: Apache-2.0
// Children that die in every way, and what their recordings say about it.
#include "guard/crash_handler.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "guard/flight_recorder.h"
#include "guard/flight_testing.h"
#include "guard/postmortem.h"

extern "C" [[noreturn]] void __assert_fail(const char*, const char*, unsigned int, const char*) noexcept;

namespace leadline::guard {
namespace {

struct Death {
  int status = 0;
  Postmortem report;
};

template <typename Body>
Death die(Body body) {
  const FlightFolder folder;
  Death death;
  death.status = run_child([&] {
    std::freopen("/dev/null", "w", stderr);
    for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) ::signal(signal, SIG_DFL);
    if (!FlightRecorder::instance().open(folder.path())) _exit(9);
    install_crash_handler(0);
    body();
  });
  death.report = postmortem_of(folder.only_file());
  return death;
}

void expect_signal(const Death& death, int signal, DeathCause cause) {
  EXPECT_TRUE(WIFSIGNALED(death.status) && WTERMSIG(death.status) == signal) << "it dies as it would have";
  EXPECT_EQ(death.report.cause, cause) << death.report.summary;
  EXPECT_EQ(death.report.signal, signal);
}

[[gnu::noinline, gnu::no_sanitize("undefined")]] void write_to(volatile int* address) { *address = 1; }

TEST(CrashHandler, SegmentationFault) {
  const Death death = die([] { write_to(reinterpret_cast<volatile int*>(0x18)); });
  expect_signal(death, SIGSEGV, DeathCause::kSegfault);
  EXPECT_EQ(death.report.fault_address, 0x18U);
  EXPECT_NE(death.report.module.find("leadline_tests"), std::string::npos) << death.report.module;
  EXPECT_GT(death.report.frames.size(), 3U);
}

TEST(CrashHandler, JumpIntoNowhere) {
  const Death death = die([] {
    using Function = void (*)();
    volatile Function nowhere = nullptr;
    nowhere();
  });
  expect_signal(death, SIGSEGV, DeathCause::kSegfault);
  EXPECT_NE(death.report.module.find("leadline_tests"), std::string::npos) << "the caller is found";
}

TEST(CrashHandler, AbortWithTheMessageOfAnException) {
  const Death death = die([] { std::thread([] { throw std::runtime_error("the answer was 43"); }).join(); });
  expect_signal(death, SIGABRT, DeathCause::kAbort);
  EXPECT_EQ(death.report.message, "uncaught C++ exception std::runtime_error: the answer was 43");
}

TEST(CrashHandler, AbortWithTheMessageOfTheCLibrary) {
  const Death death = die([] { __assert_fail("x > 0", "file.c", 12, "function"); });
  expect_signal(death, SIGABRT, DeathCause::kAbort);
  EXPECT_NE(death.report.message.find("Assertion `x > 0' failed"), std::string::npos) << death.report.message;
}

TEST(CrashHandler, IllegalInstruction) {
  const Death death = die([] { __builtin_trap(); });
#if defined(__x86_64__)
  expect_signal(death, SIGILL, DeathCause::kIllegalInstruction);
  EXPECT_TRUE(death.report.trap);
  EXPECT_TRUE(death.report.instruction.starts_with("0f 0b")) << death.report.instruction;
#else
  EXPECT_TRUE(death.report.died());
#endif
}

TEST(CrashHandler, BusErrorOfAFileThatGotShorter) {
  const Death death = die([] {
    char name[] = "/tmp/leadline-short-XXXXXX";
    const int file = mkstemp(name);
    unlink(name);
    void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    write_to(static_cast<volatile int*>(memory));
  });
  expect_signal(death, SIGBUS, DeathCause::kBusError);
}

TEST(CrashHandler, DivisionByZeroIsRaised) {
  expect_signal(die([] { raise(SIGFPE); }), SIGFPE, DeathCause::kArithmetic);
}

volatile int last_depth = -1;

[[gnu::noinline]] int recurse(int depth) {
  volatile char room[4096];
  room[depth % 4096] = 1;
  return depth == last_depth ? 0 : recurse(depth + 1) + room[1];
}

TEST(CrashHandler, StackOverflow) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have stacks of their own";
#endif
  expect_signal(die([] { recurse(0); }), SIGSEGV, DeathCause::kStackOverflow);
}

TEST(CrashHandler, ARequestToEnd) {
  const Death death = die([] {
    kill(getpid(), SIGTERM);
    pause();
  });
  expect_signal(death, SIGTERM, DeathCause::kSignal);
}

TEST(CrashHandler, KilledWithoutAWord) {
  const Death death = die([] { kill(getpid(), SIGKILL); });
  EXPECT_EQ(death.report.cause, DeathCause::kKilled) << death.report.summary;
  EXPECT_TRUE(death.report.frames.empty());
}

TEST(CrashHandler, TheHandlerBeforeIsCalled) {
  const FlightFolder folder;
  const int status = run_child([&] {
    struct sigaction action{};
    action.sa_handler = [](int) { _exit(42); };
    sigaction(SIGSEGV, &action, nullptr);
    FlightRecorder::instance().open(folder.path());
    install_crash_handler(0);
    write_to(nullptr);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42);
  EXPECT_EQ(postmortem_of(folder.only_file()).cause, DeathCause::kSegfault);
}

TEST(CrashHandler, RemovingPutsBackWhatWasThere) {
  const FlightFolder folder;
  const int status = run_child([&] {
    struct sigaction before{};
    struct sigaction after{};
    stack_t stack_before{};
    stack_t stack_after{};
    sigaction(SIGSEGV, nullptr, &before);
    sigaltstack(nullptr, &stack_before);
    FlightRecorder::instance().open(folder.path());
    install_crash_handler(0);
    remove_crash_handler();
    sigaction(SIGSEGV, nullptr, &after);
    sigaltstack(nullptr, &stack_after);
    _exit(before.sa_handler == after.sa_handler && stack_before.ss_sp == stack_after.ss_sp ? 0 : 1);
  });
  EXPECT_EQ(status, 0);
}

TEST(CrashHandler, AHandlerOnTopStaysAndStillDies) {
  const FlightFolder folder;
  const int status = run_child([&] {
    signal(SIGSEGV, SIG_DFL);
    FlightRecorder::instance().open(folder.path());
    install_crash_handler(0);
    static struct sigaction ours;
    struct sigaction top{};
    top.sa_handler = [](int number) {
      sigaction(number, &ours, nullptr);
      raise(number);
    };
    top.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &top, &ours);
    remove_crash_handler();
    write_to(nullptr);
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
  EXPECT_EQ(postmortem_of(folder.only_file()).cause, DeathCause::kKilled) << "nothing was recorded after the removal";
}

}  // namespace
}  // namespace leadline::guard
