// SPDX-License-Identifier: Apache-2.0
#include "core/memory_limits.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>

#include "core/cgroup.h"
#include "tests/support/cpp/fake_system.h"

namespace leadline {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

TEST(MemoryLimits, NothingReadableMeansNoLimits) {
  const FakeSystem system;
  const MemoryLimits limits = read_memory_limits(system.paths(), {});
  EXPECT_EQ(limits.machine_available, -1);
  EXPECT_EQ(limits.cgroup_available, -1);
  EXPECT_EQ(limits.rlimit_as, -1);
  EXPECT_EQ(limits.rlimit_data, -1);
  EXPECT_EQ(limits.available(), std::numeric_limits<int64_t>::max());
}

TEST(MemoryLimits, AvailableIsTheSmallestThatExists) {
  EXPECT_EQ((MemoryLimits{.machine_available = 30, .rlimit_as = 20, .rlimit_data = 40}).available(), 20);
  EXPECT_EQ((MemoryLimits{.machine_available = 30, .cgroup_available = 0}).available(), 0);
}

TEST(MemoryLimits, ReadsMemAvailable) {
  FakeSystem system;
  system.write("proc/meminfo", "MemTotal:       16000000 kB\nMemFree: 5 kB\nMemAvailable:    2048 kB\n");
  EXPECT_EQ(read_memory_limits(system.paths(), {}).machine_available, 2 * kMiB);
}

TEST(MemoryLimits, ResourceLimitsLeaveWhatIsNotInUse) {
  FakeSystem system;
  system.write("proc/self/status", "Name:\tx\nVmPeak:\t  9999 kB\nVmSize:\t  4096 kB\nVmData:\t  1024 kB\n");
  const MemoryLimits limits = read_memory_limits(system.paths(), {.address_space = 10 * kMiB, .data = 3 * kMiB});
  EXPECT_EQ(limits.rlimit_as, 6 * kMiB);
  EXPECT_EQ(limits.rlimit_data, 2 * kMiB);
  EXPECT_EQ(read_memory_limits(system.paths(), {.address_space = kMiB}).rlimit_as, 0);
}

TEST(MemoryLimits, Version2LeavesTheLimitMinusUsage) {
  FakeSystem system;
  system.write("proc/self/cgroup", "0::/user/job\n");
  system.write("cgroup/user/job/memory.max", "100000\n");
  system.write("cgroup/user/job/memory.current", "30000\n");
  EXPECT_EQ(read_memory_limits(system.paths(), {}).cgroup_available, 70000);
}

TEST(MemoryLimits, InactiveFilePagesCountAsFree) {
  FakeSystem system;
  system.write("proc/self/cgroup", "0::/job\n");
  system.write("cgroup/job/memory.max", "100000\n");
  system.write("cgroup/job/memory.current", "60000\n");
  system.write("cgroup/job/memory.stat", "anon 1\ninactive_file_total 7\ninactive_file 25000\nactive_file 9\n");
  EXPECT_EQ(read_memory_limits(system.paths(), {}).cgroup_available, 65000);
  system.write("cgroup/job/memory.stat", "inactive_file 99999999\n");
  EXPECT_EQ(read_memory_limits(system.paths(), {}).cgroup_available, 100000);
}

TEST(MemoryLimits, AnAncestorsSmallerLimitCounts) {
  FakeSystem system;
  system.write("proc/self/cgroup", "0::/user/job/step\n");
  system.write("cgroup/user/job/step/memory.max", "max\n");
  system.write("cgroup/user/job/step/memory.current", "10\n");
  system.write("cgroup/user/job/memory.max", "5000\n");
  system.write("cgroup/user/job/memory.current", "1000\n");
  system.write("cgroup/user/memory.max", "9000\n");
  system.write("cgroup/user/memory.current", "6000\n");
  EXPECT_EQ(read_memory_limits(system.paths(), {}).cgroup_available, 3000);
}

TEST(MemoryLimits, MemoryHighCountsAsALimit) {
  FakeSystem system;
  system.write("proc/self/cgroup", "0::/job\n");
  system.write("cgroup/job/memory.max", "max\n");
  system.write("cgroup/job/memory.high", "4000\n");
  system.write("cgroup/job/memory.current", "1000\n");
  EXPECT_EQ(read_memory_limits(system.paths(), {}).cgroup_available, 3000);
}

TEST(MemoryLimits, UsageAboveTheLimitLeavesNothing) {
  FakeSystem system;
  system.write("proc/self/cgroup", "0::/\n");
  system.write("cgroup/memory.max", "1000\n");
  system.write("cgroup/memory.current", "2000\n");
  EXPECT_EQ(read_memory_limits(system.paths(), {}).cgroup_available, 0);
}

TEST(MemoryLimits, Version1ReadsItsOwnFiles) {
  FakeSystem system;
  system.write("proc/self/cgroup", "5:cpuset:/x\n4:memory:/box/a\n0::/\n");
  system.write("cgroup/memory/box/a/memory.limit_in_bytes", "50000\n");
  system.write("cgroup/memory/box/a/memory.usage_in_bytes", "20000\n");
  system.write("cgroup/memory/box/a/memory.stat", "inactive_file 1\ntotal_inactive_file 5000\n");
  system.write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(read_memory_limits(system.paths(), {}).cgroup_available, 35000);
}

TEST(MemoryLimits, Version1HugeNumberMeansNoLimit) {
  FakeSystem system;
  system.write("proc/self/cgroup", "4:memory:/\n");
  system.write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  system.write("cgroup/memory/memory.usage_in_bytes", "1000\n");
  EXPECT_EQ(read_memory_limits(system.paths(), {}).cgroup_available, -1);
}

TEST(MemoryLimits, InAContainerTheMountPointIsTheGroup) {
  FakeSystem system;
  system.write("proc/self/cgroup", "0::/../docker/0123abcd\n");
  system.write("cgroup/memory.max", "8000\n");
  system.write("cgroup/memory.current", "500\n");
  EXPECT_EQ(read_memory_limits(system.paths(), {}).cgroup_available, 7500);
}

TEST(MemoryLimits, MalformedFilesAreNoLimits) {
  FakeSystem system;
  system.write("proc/self/cgroup", "garbage\n::::\n\n0::/a\n4:memory\n");
  system.write("proc/meminfo", "MemAvailable: lots kB\n");
  system.write("cgroup/a/memory.max", "-7\n");
  system.write("cgroup/memory.max", "");
  const MemoryLimits limits = read_memory_limits(system.paths(), {});
  EXPECT_EQ(limits.cgroup_available, -1);
  EXPECT_EQ(limits.machine_available, -1);
}

TEST(MemoryLimits, ThisMachineSaysWhatItHas) {
  const MemoryLimits limits = read_memory_limits();
  EXPECT_GT(limits.machine_available, 0);
  EXPECT_GT(limits.available(), 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they reserve terabytes of address space
TEST(MemoryLimits, SeesTheResourceLimitsOfTheProcess) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit{.rlim_cur = rlim_t{1} << 34, .rlim_max = RLIM_INFINITY};
    const bool set = setrlimit(RLIMIT_AS, &limit) == 0 && setrlimit(RLIMIT_DATA, &limit) == 0;
    const MemoryLimits limits = read_memory_limits();
    const auto near = [](int64_t bytes) { return bytes > (int64_t{1} << 33) && bytes < (int64_t{1} << 34); };
    _exit(set && near(limits.rlimit_as) && near(limits.rlimit_data) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}
#endif

TEST(ReadTextFile, WhatCannotBeReadIsNothing) {
  EXPECT_FALSE(read_text_file("/proc/self/mem"));  // opens, and fails to read: so does a process that has just ended
  EXPECT_FALSE(read_text_file("/proc"));
  EXPECT_FALSE(read_text_file("/proc/self/no such file"));
  EXPECT_TRUE(read_text_file("/proc/self/status"));
}

}  // namespace
}  // namespace leadline
