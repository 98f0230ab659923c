// SPDX-License-Identifier: Apache-2.0
#include "guard/watch_rule.h"

#include <gtest/gtest.h>

#include "guard/memory_probe.h"
#include "tests/support/cpp/fake_system.h"

namespace leadline::guard {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

MemorySample at(double seconds, int64_t resident, int64_t used, int64_t capacity, bool container = false) {
  MemorySample sample;
  sample.seconds = seconds;
  sample.resident = resident;
  sample.capacity = capacity;
  sample.available = capacity - used;
  sample.container = container;
  return sample;
}

TEST(WatchRule, AlarmsWhenACellGrowsIntoTheLimit) {
  WatchRule rule(0.9, 0);
  rule.begin_cell(at(0, kGiB, 5 * kGiB, 10 * kGiB));
  EXPECT_FALSE(rule.take(at(0.5, 3 * kGiB, 7 * kGiB, 10 * kGiB), true));
  const auto alarm = rule.take(at(1.0, 5 * kGiB, 9 * kGiB + kMiB, 10 * kGiB), true);
  ASSERT_TRUE(alarm);
  EXPECT_EQ(alarm->growth, 4 * kGiB);
  EXPECT_DOUBLE_EQ(alarm->since, 1.0);
  EXPECT_FALSE(alarm->own_limit);
  EXPECT_NEAR(alarm->bytes_per_second, 4e9, 4e8);
}

TEST(WatchRule, OneAlarmPerEpisode) {
  WatchRule rule(0, kGiB);
  rule.begin_cell(at(0, 0, 0, 0));
  ASSERT_TRUE(rule.take(at(1, kGiB + kMiB, 0, 0), true));
  EXPECT_TRUE(rule.take(at(1.1, kGiB + kMiB, 0, 0), true)) << "could not be delivered: it is due again";
  rule.told(at(1.1, kGiB + kMiB, 0, 0));
  EXPECT_FALSE(rule.take(at(1.2, kGiB + 2 * kMiB, 0, 0), true));
  EXPECT_FALSE(rule.take(at(5.0, kGiB + 2 * kMiB, 0, 0), true)) << "it stands still";
  EXPECT_TRUE(rule.take(at(6.0, kGiB + 100 * kMiB, 0, 0), true)) << "it was told, and grows on";
  rule.told(at(6.0, kGiB + 100 * kMiB, 0, 0));
  EXPECT_FALSE(rule.take(at(7.0, kGiB / 2, 0, 0), true));
  EXPECT_FALSE(rule.in_episode());
  EXPECT_TRUE(rule.take(at(8.0, kGiB + kMiB, 0, 0), true)) << "it fell and rose again";
}

TEST(WatchRule, WhatOthersUseIsNoReason) {
  WatchRule rule(0.9, 0);
  rule.begin_cell(at(0, kGiB, 5 * kGiB, 10 * kGiB));
  EXPECT_FALSE(rule.take(at(1, kGiB + kMiB, 9900 * kMiB, 10 * kGiB), true)) << "another process took it";
  EXPECT_TRUE(rule.take(at(1, kGiB + kMiB, 9900 * kMiB, 10 * kGiB, true), true)) << "in a container it is ours";
  rule.begin_cell(at(2, kGiB, 9900 * kMiB, 10 * kGiB, true));
  EXPECT_FALSE(rule.take(at(3, kGiB, 9900 * kMiB, 10 * kGiB, true), true)) << "this cell did nothing";
  EXPECT_FALSE(rule.take(at(3, 5 * kGiB, 9990 * kMiB, 10 * kGiB, true), false)) << "no cell runs";
}

TEST(WatchRule, LooksMoreOftenAsRoomShrinks) {
  WatchRule rule(0.9, 0);
  rule.take(at(0, kGiB, 2 * kGiB, 100 * kGiB), true);
  EXPECT_DOUBLE_EQ(rule.interval(true), 0.25);
  EXPECT_DOUBLE_EQ(rule.interval(false), 0.5);
  rule.take(at(1, kGiB, 91500 * kMiB, 100 * kGiB), true);
  const double near = rule.interval(true);
  EXPECT_LT(near, 0.25);
  rule.take(at(2, kGiB, 91 * kGiB, 100 * kGiB), true);
  EXPECT_DOUBLE_EQ(rule.interval(true), 0.002);
}

void write_process(FakeSystem& system, const char* cgroup) {
  system.write("proc/self/statm", "100000 50000 1000 1 0 70000 0\n");
  system.write("proc/self/cgroup", cgroup);
  system.write("proc/meminfo",
               "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable:   12000000 kB\nSwapTotal:       2000000 kB\n"
               "SwapFree:        1000000 kB\n");
}

TEST(MemoryProbe, WithoutAControlGroupItIsTheMachine) {
  FakeSystem system;
  write_process(system, "0::/\n");
  const MemorySample sample = MemoryProbe(system.paths()).sample();
  EXPECT_EQ(sample.resident, 50000 * getpagesize());
  EXPECT_EQ(sample.data, int64_t{70000} * getpagesize());
  EXPECT_EQ(sample.capacity, int64_t{18000000} * 1024);
  EXPECT_EQ(sample.available, int64_t{13000000} * 1024);
  EXPECT_FALSE(sample.container);
}

TEST(MemoryProbe, PageCacheOfAGroupIsNotUsed) {
  FakeSystem system;
  write_process(system, "0::/job\n");
  system.write("cgroup/job/memory.max", "1000000000\n");
  system.write("cgroup/job/memory.current", "950000000\n");
  system.write("cgroup/job/memory.stat", "anon 100000000\nactive_file 300000000\ninactive_file 500000000\n");
  const MemorySample sample = MemoryProbe(system.paths()).sample();
  EXPECT_TRUE(sample.container);
  EXPECT_EQ(sample.capacity, 1000000000);
  EXPECT_EQ(sample.available, 850000000);
  EXPECT_EQ(sample.used(), 150000000);
}

TEST(MemoryProbe, VersionOneAndTheSmallestGroup) {
  FakeSystem system;
  write_process(system, "4:memory:/a/b\n");
  system.write("cgroup/memory/a/memory.limit_in_bytes", "2000000000\n");
  system.write("cgroup/memory/a/memory.usage_in_bytes", "1900000000\n");
  system.write("cgroup/memory/a/memory.stat", "total_inactive_file 0\n");
  system.write("cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
  system.write("cgroup/memory/a/b/memory.usage_in_bytes", "5\n");
  system.write("cgroup/memory/a/b/memory.stat", "total_inactive_file 0\n");
  system.write("cgroup/memory/a/b/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
  const MemorySample sample = MemoryProbe(system.paths()).sample();
  EXPECT_EQ(sample.capacity, 2000000000);
  EXPECT_EQ(sample.available, 100000000);
  EXPECT_EQ(oom_kills(memory_groups(system.paths()).back()), 3);
}

TEST(MemoryProbe, NonsenseIsUnknown) {
  FakeSystem system;
  system.write("proc/self/statm", "x");
  system.write("proc/self/cgroup", "0::/\n");
  system.write("proc/meminfo", "MemTotal: 99999999999999999999 kB\nMemAvailable: -5 kB\n");
  system.write("cgroup/memory.max", "-7");
  system.write("cgroup/memory.stat", "");
  const MemorySample sample = MemoryProbe(system.paths()).sample();
  EXPECT_EQ(sample.resident, 0);
  EXPECT_EQ(sample.capacity, 0);
  EXPECT_EQ(MemoryProbe(FakeSystem().paths()).sample().capacity, 0);
}

}  // namespace
}  // namespace leadline::guard
