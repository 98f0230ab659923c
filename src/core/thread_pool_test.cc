// SPDX-License-Identifier: Apache-2.0
#include "core/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/cgroup.h"
#include "core/error.h"
#include "tests/support/cpp/fake_system.h"

namespace leadline {
namespace {

using Parts = std::vector<std::pair<int64_t, int64_t>>;

/// The pool outlives it, and so does the process: workers throw too.
TEST(ThreadPool, PassesOnWhatABodyThrows) {
  ThreadPool pool(4);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> inside = 0;
    EXPECT_THROW(pool.for_pieces(4, kWholePiece,
                                 [&](int64_t begin, int64_t) {
                                   ++inside;
                                   std::this_thread::yield();
                                   --inside;
                                   if (begin != round % 4) throw std::bad_alloc();
                                 }),
                 std::bad_alloc);
    EXPECT_EQ(inside, 0) << "all parts that were begun are done when it is thrown";
  }
  pool.for_pieces(4, kWholePiece, [](int64_t, int64_t) {});
}

Parts parts_of(ThreadPool& pool, int64_t count, double cost) {
  std::mutex mutex;
  Parts parts;
  pool.for_pieces(count, cost, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    parts.emplace_back(begin, end);
  });
  std::ranges::sort(parts);
  return parts;
}

/// Runs `body` in a forked process; true when it returns true in time.
template <typename Body>
bool holds_in_fork(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(ThreadPool, NeedsAtLeastOneThread) {
  EXPECT_THROW(ThreadPool(0), Error);
  EXPECT_THROW(ThreadPool(-3), Error);
  EXPECT_EQ(ThreadPool(1).size(), 1);
  EXPECT_EQ(ThreadPool(3).size(), 3);
}

TEST(ThreadPool, SplitsIntoContiguousPartsOfNearlyEqualSize) {
  ThreadPool pool(4);
  EXPECT_EQ(parts_of(pool, 10, kWholePiece), (Parts{{0, 3}, {3, 6}, {6, 8}, {8, 10}}));
  EXPECT_EQ(parts_of(pool, 3, kWholePiece), (Parts{{0, 1}, {1, 2}, {2, 3}}));
}

TEST(ThreadPool, PartsAreWorthAThread) {
  ThreadPool pool(4);
  EXPECT_EQ(parts_of(pool, 10, ThreadPool::kPartCost / 4), (Parts{{0, 5}, {5, 10}}));
  EXPECT_EQ(parts_of(pool, 7, ThreadPool::kPartCost / 4), (Parts{{0, 7}}));
  EXPECT_EQ(parts_of(pool, 3, ThreadPool::kPartCost / 100), (Parts{{0, 3}}));
}

TEST(ThreadPool, OddArgumentsAreSafe) {
  ThreadPool pool(4);
  EXPECT_TRUE(parts_of(pool, 0, kWholePiece).empty());
  EXPECT_TRUE(parts_of(pool, -5, kWholePiece).empty());
  EXPECT_EQ(parts_of(pool, 2, 0), (Parts{{0, 2}}));
  EXPECT_EQ(parts_of(pool, 2, -7), (Parts{{0, 2}}));
  const int64_t most = std::numeric_limits<int64_t>::max();
  const Parts parts = parts_of(pool, most, kWholePiece);
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_EQ(parts.back().second, most);
  for (size_t i = 1; i < parts.size(); ++i) EXPECT_EQ(parts[i].first, parts[i - 1].second);
}

TEST(ThreadPool, OneThreadRunsEverythingAtOnceOnTheCaller) {
  ThreadPool pool(1);
  std::thread::id runner;
  pool.for_pieces(100, kWholePiece, [&](int64_t begin, int64_t end) {
    runner = std::this_thread::get_id();
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 100);
  });
  EXPECT_EQ(runner, std::this_thread::get_id());
}

TEST(ThreadPool, PartsRunAtTheSameTime) {
  ThreadPool pool(3);
  std::atomic<int> arrived{0};
  std::mutex mutex;
  std::set<std::thread::id> runners;
  pool.for_pieces(3, kWholePiece, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived.load() < 3) std::this_thread::yield();  // hangs unless three threads are in here
    const std::lock_guard lock(mutex);
    runners.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(runners.size(), 3U);
}

TEST(ThreadPool, ManyShortJobsEachRunEveryItemOnce) {
  for (const int threads : {2, 3, 8}) {  // 8: more than the CPUs of most test machines
    ThreadPool pool(threads);
    std::vector<int> counts(64, 0);
    int expected = 0;
    for (int round = 0; round < 3000; ++round) {
      const int64_t count = 1 + round % 64;
      std::fill(counts.begin(), counts.end(), 0);
      pool.for_pieces(count, kWholePiece, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++counts[static_cast<size_t>(i)];
      });
      expected = static_cast<int>(count);
      ASSERT_EQ(std::accumulate(counts.begin(), counts.end(), 0), expected);
      ASSERT_TRUE(std::all_of(counts.begin(), counts.begin() + count, [](int n) { return n == 1; }));
      if (round % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // let the workers sleep
    }
  }
}

TEST(ThreadPool, NestedCallsRunInsideTheirPart) {
  ThreadPool pool(4);
  std::atomic<int64_t> sum{0};
  pool.for_pieces(8, kWholePiece, [&](int64_t begin, int64_t end) {
    const std::thread::id outer = std::this_thread::get_id();
    for (int64_t i = begin; i < end; ++i) {
      pool.for_pieces(10, kWholePiece, [&](int64_t b, int64_t e) {
        EXPECT_EQ(std::this_thread::get_id(), outer);
        for (int64_t k = b; k < e; ++k) sum += 10 * i + k;
      });
    }
  });
  EXPECT_EQ(sum.load(), 79 * 80 / 2);
}

TEST(ThreadPool, CallsFromSeveralThreadsAreSafe) {
  ThreadPool pool(2);
  std::vector<std::thread> callers;
  callers.reserve(3);
  std::atomic<int64_t> sum{0};
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        pool.for_pieces(10, kWholePiece, [&](int64_t begin, int64_t end) { sum += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), 3 * 500 * 10);
}

TEST(ThreadPool, AbsurdNumberOfThreadsStillSplitsAndWorks) {
  ThreadPool pool(std::numeric_limits<int>::max());
  EXPECT_EQ(pool.size(), std::numeric_limits<int>::max());
  EXPECT_EQ(parts_of(pool, 1000, kWholePiece).size(), 1000U);
}

TEST(ThreadPool, PoolsComeAndGo) {
  for (int round = 0; round < 50; ++round) {
    ThreadPool pool(3);
    if (round % 2 == 1) continue;  // never used
    EXPECT_EQ(parts_of(pool, 3, kWholePiece).size(), 3U);
  }
}

TEST(ThreadPool, WorkersLeaveTheProgramsSignalsAlone) {
  ThreadPool pool(2);
  std::atomic<int> arrived{0};
  const std::thread::id caller = std::this_thread::get_id();
  pool.for_pieces(2, kWholePiece, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived.load() < 2) std::this_thread::yield();
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    const bool worker = std::this_thread::get_id() != caller;
    EXPECT_EQ(sigismember(&blocked, SIGINT), worker ? 1 : 0);
    EXPECT_EQ(sigismember(&blocked, SIGSEGV), 0);
  });
}

#if !defined(__SANITIZE_THREAD__)  // it does not support threads made after a fork of a threaded process
TEST(ThreadPool, ForkedProcessRunsTheSamePartsOnItsOwn) {
  ThreadPool pool(3);
  const Parts before = parts_of(pool, 10, kWholePiece);
  EXPECT_TRUE(holds_in_fork([&] { return parts_of(pool, 10, kWholePiece) == before; }));
  EXPECT_EQ(parts_of(pool, 10, kWholePiece), before);
}

TEST(ThreadPool, ForkedProcessDestroysThePoolWithoutWaiting) {
  auto pool = std::make_unique<ThreadPool>(3);
  EXPECT_TRUE(holds_in_fork([&] {
    pool.reset();
    return true;
  }));
  EXPECT_EQ(parts_of(*pool, 3, kWholePiece).size(), 3U);
}

TEST(ThreadPool, ForkDuringAJobLeavesAUsablePool) {
  ThreadPool pool(2);
  std::atomic<bool> held{false};
  pool.for_pieces(2, kWholePiece, [&](int64_t begin, int64_t) {
    if (begin == 0) held = holds_in_fork([&] { return parts_of(pool, 10, kWholePiece).size() == 2; });
  });
  EXPECT_TRUE(held.load());
}

TEST(ThreadPool, ForkedProcessCanMakeAPoolOfItsOwn) {
  ThreadPool pool(2);
  EXPECT_TRUE(holds_in_fork([&] {
    ThreadPool own(2);
    std::atomic<int> arrived{0};
    own.for_pieces(2, kWholePiece, [&](int64_t, int64_t) {
      ++arrived;
      while (arrived.load() < 2) std::this_thread::yield();
    });
    return arrived.load() == 2;
  }));
}
#endif

TEST(UsableCpus, FollowsTheAffinityOfTheThread) {
  EXPECT_GE(usable_cpus(), 1);
  int after = 0;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
    if (sched_setaffinity(0, sizeof(one), &one) == 0) after = usable_cpus();
  }).join();
  EXPECT_EQ(after, 1);
}

TEST(CpuQuota, ReadsVersion2AlongTheHierarchy) {
  FakeSystem system;
  EXPECT_FALSE(cgroup_cpu_quota(system.paths()));
  system.write("proc/self/cgroup", "0::/a/b\n");
  system.write("cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_FALSE(cgroup_cpu_quota(system.paths()));
  system.write("cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(cgroup_cpu_quota(system.paths()), 1.5);
}

TEST(CpuQuota, ReadsVersion1) {
  FakeSystem system;
  system.write("proc/self/cgroup", "3:cpu,cpuacct:/box\n");
  system.write("cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "200000\n");
  system.write("cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(cgroup_cpu_quota(system.paths()), 4.0);
  system.write("cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "-1\n");
  EXPECT_FALSE(cgroup_cpu_quota(system.paths()));
}

}  // namespace
}  // namespace leadline
