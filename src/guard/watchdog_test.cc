// SPDX-License-Identifier: Apache-2.0
#include "guard/watchdog.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "guard/flight_testing.h"
#include "tests/support/cpp/fake_system.h"

namespace leadline::guard {
namespace {

using std::chrono::milliseconds;
constexpr int64_t kMiB = int64_t{1} << 20;

void* take(int64_t bytes, bool touch) {
  void* const memory =
      mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (touch) std::memset(memory, 1, static_cast<size_t>(bytes));
  return memory;
}

/// Without what malloc keeps of memory that other tests freed: a watch has that returned before an alarm.
int64_t resident() {
  malloc_trim(0);
  return MemoryProbe(SystemPaths{}).sample().resident;
}

template <typename Condition>
bool within(milliseconds time, Condition condition) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return condition();
}

TEST(Watchdog, TellsOnceWhenACellPassesItsLimit) {
  std::atomic<int> alarms = 0;
  std::atomic<int> cell = 0;
  Watchdog watchdog({.fraction = 0,
                     .resident_limit = resident() + 64 * kMiB,
                     .refuse_large = false,
                     .cells_only = true,
                     .on_alarm = [&](const WatchAlarm& alarm) {
                       cell = alarm.cell.number;
                       ++alarms;
                       return true;
                     }});
  watchdog.begin_cell(5, "x = 1");
  void* const memory = take(67 * kMiB, true);  // what it takes after the alarm is too little for another
  EXPECT_TRUE(within(milliseconds(5000), [&] { return alarms > 0; }));
  EXPECT_EQ(cell, 5);
  std::this_thread::sleep_for(milliseconds(100));
  munmap(memory, 67 * kMiB);
  const CellReport report = watchdog.end_cell();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose shadow memory grows too
  EXPECT_EQ(alarms, 1);
#endif
  EXPECT_EQ(report.number, 5);
  EXPECT_GE(report.peak - report.before, 60 * kMiB);
  EXPECT_LT(report.after, report.peak);
  EXPECT_EQ(watchdog.cells().size(), 1U);
  EXPECT_EQ(watchdog.end_cell().number, 0) << "none runs";
}

TEST(Watchdog, TellsBetweenCellsToo) {
  std::atomic<int> alarms = 0;
  std::atomic<bool> running = true;
  std::atomic<int> thread = 0;
  Watchdog watchdog({.fraction = 0,
                     .resident_limit = resident() + 96 * kMiB,
                     .refuse_large = false,
                     .cells_only = true,
                     .on_alarm = [&](const WatchAlarm& alarm) {
                       running = alarm.cell.running;
                       thread = alarm.thread;
                       ++alarms;
                       return true;
                     }});
  watchdog.begin_cell(1, "thread.start()");
  watchdog.end_cell();
  std::atomic<pid_t> grower = 0;
  std::thread background([&] {
    grower = gettid();
    for (int i = 0; i < 120 && alarms == 0; ++i) {
      take(kMiB, true);
      std::this_thread::sleep_for(milliseconds(2));
    }
  });
  EXPECT_TRUE(within(milliseconds(10000), [&] { return alarms > 0; }));
  background.join();
  EXPECT_FALSE(running);
  EXPECT_EQ(thread, grower) << "the thread that grew is named";
}

TEST(Watchdog, RefusesOneAllocationLargerThanWhatIsLeft) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the shadow memory of sanitizers does not fit under a limit";
#endif
  rlimit before{};
  getrlimit(RLIMIT_DATA, &before);
  {
    Watchdog watchdog(
        {.fraction = 0, .resident_limit = resident() + 256 * kMiB, .refuse_native = true, .cells_only = true});
    watchdog.begin_cell(1, "");
    const bool refused = within(milliseconds(2000), [] {
      void* const memory = take(1024 * kMiB, false);
      if (memory != nullptr) munmap(memory, 1024 * kMiB);
      return memory == nullptr;
    });
    EXPECT_TRUE(refused);
    void* const small = take(100 * kMiB, true);
    EXPECT_NE(small, nullptr);
    munmap(small, 100 * kMiB);
    const int status = run_child([&] {
      rlimit limit{};
      getrlimit(RLIMIT_DATA, &limit);
      _exit(limit.rlim_cur == before.rlim_cur ? 0 : 1);
    });
    EXPECT_EQ(status, 0) << "a forked child has the limit of before";
    watchdog.end_cell();
    EXPECT_TRUE(within(milliseconds(2000), [&] {
      rlimit limit{};
      getrlimit(RLIMIT_DATA, &limit);
      return limit.rlim_cur == before.rlim_cur;
    })) << "between cells there is no limit";
  }
  rlimit after{};
  getrlimit(RLIMIT_DATA, &after);
  EXPECT_EQ(after.rlim_cur, before.rlim_cur);
}

TEST(Watchdog, CostsUnderHalfAPercentOfACoreEvenNearTheLimit) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers cost more than the watchdog";
#endif
  // At a limit it looks as often as it may; alarms are not due, for nothing grows. What the system adds to a thread's
  // time on a machine that is short of memory does not come three times in a row.
  double share = 1;
  for (int tries = 0; tries < 3 && share >= 0.005; ++tries) {
    Watchdog watchdog({.fraction = 0.92, .resident_limit = std::max<int64_t>(resident() - kMiB, 1)});
    const auto begin = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(milliseconds(3000));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    share = watchdog.cpu_seconds() / seconds;
    EXPECT_GT(watchdog.samples().size(), 5U);
  }
  EXPECT_LT(share, 0.005);
}

TEST(Watchdog, ACopyInAForkedChildIsHarmless) {
  Watchdog watchdog({});
  watchdog.begin_cell(1, "");
  const int status = run_child([&] {
    watchdog.begin_cell(2, "");
    watchdog.end_cell();
    watchdog.samples();
    watchdog.stop();
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(watchdog.end_cell().number, 1);
}

TEST(Watchdog, WorkersAreOfferedToTheOomKillerNearTheEndOfMemoryOnly) {
  const pid_t worker = fork();
  if (worker == 0) {
    pause();
    _exit(0);
  }
  const auto score = [](pid_t pid) {
    return std::stoi(read_text_file("/proc/" + std::to_string(pid) + "/oom_score_adj").value_or("-1"));
  };
  const int before = score(getpid());
  EXPECT_EQ(score(worker), before);
  {
    Watchdog far({.fraction = 1.0, .refuse_large = false});
    std::this_thread::sleep_for(milliseconds(400));
    EXPECT_EQ(score(worker), before);
  }
  {
    Watchdog near({.fraction = 0.0001, .refuse_large = false});
    EXPECT_TRUE(within(milliseconds(5000), [&] { return score(worker) > before; }));
    EXPECT_EQ(score(getpid()), before);
  }
  kill(worker, SIGKILL);
  waitpid(worker, nullptr, 0);
}

TEST(Watchdog, MembersCanBeCalledFromManyThreads) {
  Watchdog watchdog({.resident_limit = 1, .refuse_large = false, .on_alarm = [](const WatchAlarm&) { return true; }});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) {
        watchdog.begin_cell(i * 1000 + round, "x");
        (void)watchdog.sample();
        (void)watchdog.busy();
        watchdog.end_cell();
        (void)watchdog.cells();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  watchdog.stop();
  EXPECT_FALSE(watchdog.busy());
}

}  // namespace
}  // namespace leadline::guard
