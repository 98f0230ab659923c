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
  EXPECT_FALSE(rule.take(at(0.5, 3 * kGiB, 7 * kGiB, 10 * kGiB)));
  const auto alarm = rule.take(at(1.0, 5 * kGiB, 9 * kGiB + kMiB, 10 * kGiB));
  ASSERT_TRUE(alarm);
  EXPECT_EQ(alarm->growth, 4 * kGiB);
  EXPECT_DOUBLE_EQ(alarm->since, 1.0);
  EXPECT_FALSE(alarm->own_limit);
  EXPECT_NEAR(alarm->bytes_per_second, 4e9, 4e8);
}

TEST(WatchRule, OneAlarmPerEpisode) {
  WatchRule rule(0, kGiB);
  rule.begin_cell(at(0, 0, 0, 0));
  ASSERT_TRUE(rule.take(at(1, kGiB + kMiB, 0, 0)));
  EXPECT_TRUE(rule.take(at(1.1, kGiB + kMiB, 0, 0))) << "could not be delivered: it is due again";
  rule.told(at(1.1, kGiB + kMiB, 0, 0));
  EXPECT_FALSE(rule.take(at(1.2, kGiB + 2 * kMiB, 0, 0)));
  EXPECT_FALSE(rule.take(at(5.0, kGiB + 2 * kMiB, 0, 0))) << "it stands still";
  EXPECT_TRUE(rule.take(at(6.0, kGiB + 100 * kMiB, 0, 0))) << "it was told, and grows on";
  rule.told(at(6.0, kGiB + 100 * kMiB, 0, 0));
  EXPECT_FALSE(rule.take(at(7.0, kGiB / 2, 0, 0)));
  EXPECT_FALSE(rule.in_episode());
  EXPECT_TRUE(rule.take(at(8.0, kGiB + kMiB, 0, 0))) << "it fell and rose again";
}

TEST(WatchRule, RacesWhenMemoryEndsSoonHoweverSlowTheMachineIs) {
  WatchRule rule(0.92, 0);
  rule.begin_cell(at(0, 1000 * kMiB, 1000 * kMiB, 1800 * kMiB));
  rule.take(at(1.0, 1550 * kMiB, 1550 * kMiB, 1800 * kMiB));
  rule.take(at(2.0, 1650 * kMiB, 1650 * kMiB, 1800 * kMiB));
  EXPECT_FALSE(rule.races()) << "100 MiB a second, and 150 are left";
  rule.take(at(2.7, 1720 * kMiB, 1720 * kMiB, 1800 * kMiB));
  EXPECT_TRUE(rule.races()) << "80 are left";
  rule.take(at(5.0, 1720 * kMiB, 1720 * kMiB, 1800 * kMiB));
  EXPECT_FALSE(rule.races()) << "it stands still";
}

TEST(WatchRule, WhatOthersUseIsNoReason) {
  WatchRule rule(0.9, 0);
  rule.begin_cell(at(0, kGiB, 5 * kGiB, 10 * kGiB));
  const auto warning = rule.take(at(1, kGiB + kMiB, 9900 * kMiB, 10 * kGiB));
  ASSERT_TRUE(warning) << "another process took it";
  EXPECT_TRUE(warning->warning);
  EXPECT_FALSE(rule.take(at(1.1, kGiB + kMiB, 9900 * kMiB, 10 * kGiB))) << "one warning is enough";
  rule.begin_cell(at(2, kGiB, 9900 * kMiB, 10 * kGiB, true));
  EXPECT_FALSE(rule.take(at(3, kGiB, 9900 * kMiB, 10 * kGiB, true))) << "this cell did nothing";
}

TEST(WatchRule, InAContainerWhatNobodyElseHasIsOurs) {
  const auto first = [](int64_t neighbours) {
    WatchRule rule(0.9, 0);
    rule.begin_cell(at(0, kGiB, 5 * kGiB, 10 * kGiB, true));
    rule.take(at(0.5, kGiB, 5 * kGiB, 10 * kGiB, true));
    MemorySample now = at(1, kGiB + 8192, 9900 * kMiB, 10 * kGiB, true);
    now.neighbours = neighbours;
    return rule.take(now);
  };
  const auto alone = first(0);
  ASSERT_TRUE(alone);
  EXPECT_FALSE(alone->warning) << "files in memory are ours";
  const auto beside = first(4 * kGiB);
  ASSERT_TRUE(beside);
  EXPECT_TRUE(beside->warning) << "the one beside us grew by as much";
}

TEST(WatchRule, WhoGrowsNowIsStoppedAndNotWhoGrewBefore) {
  WatchRule rule(0.9, 0);
  rule.begin_cell(at(0, kGiB, 2 * kGiB, 10 * kGiB, true));
  for (int i = 0; i < 100; ++i) rule.take(at(1 + 0.1 * i, 4 * kGiB, 5 * kGiB, 10 * kGiB, true));
  MemorySample now = at(12, 4 * kGiB + kMiB, 9900 * kMiB, 10 * kGiB, true);
  now.neighbours = 5 * kGiB;
  const auto warning = rule.take(now);
  ASSERT_TRUE(warning);
  EXPECT_TRUE(warning->warning);
  now.seconds = 12.2;
  now.resident += 3 * kGiB;
  const auto alarm = rule.take(now);
  ASSERT_TRUE(alarm) << "now it is this one";
  EXPECT_FALSE(alarm->warning);
}

TEST(WatchRule, WorkersAreCountedToTheirParent) {
  WatchRule rule(0.9, 0);
  rule.begin_cell(at(0, kGiB, 2 * kGiB, 10 * kGiB));
  MemorySample now = at(1, kGiB, 9300 * kMiB, 10 * kGiB);
  now.workers = 7 * kGiB;
  now.worker_count = 4;
  const auto alarm = rule.take(now);
  ASSERT_TRUE(alarm);
  EXPECT_FALSE(alarm->warning);
  EXPECT_EQ(alarm->worker_growth, 7 * kGiB);
}

TEST(WatchRule, AnAlarmThatReachedNobodyComesAgainSoon) {
  WatchRule rule(0, kGiB);
  rule.begin_cell(at(0, 0, 0, 0));
  ASSERT_TRUE(rule.take(at(1, kGiB + kMiB, 0, 0)));
  rule.told(at(1, kGiB + kMiB, 0, 0));
  rule.take_back();
  EXPECT_FALSE(rule.take(at(1.01, kGiB + kMiB, 0, 0)));
  EXPECT_TRUE(rule.take(at(1.1, kGiB + kMiB, 0, 0)));
}

TEST(WatchRule, PressureIsAReasonBeforeTheFillLevel) {
  WatchRule rule(0.92, 0);
  rule.begin_cell(at(0, kGiB, 2 * kGiB, 10 * kGiB));
  MemorySample now = at(1, 7 * kGiB, 8500 * kMiB, 10 * kGiB);
  EXPECT_FALSE(rule.take(now));
  now.pressure = 0.6;
  now.seconds = 2;
  const auto alarm = rule.take(now);
  ASSERT_TRUE(alarm);
  EXPECT_TRUE(alarm->by_pressure);
  WatchRule with_room(0.92, 0);
  with_room.begin_cell(at(0, kGiB, 2 * kGiB, 10 * kGiB));
  now = at(1, 3 * kGiB, 5 * kGiB, 10 * kGiB);
  now.pressure = 0.9;
  EXPECT_FALSE(with_room.take(now)) << "half of memory is free";
}

TEST(WatchRule, LooksMoreOftenAsRoomShrinks) {
  WatchRule rule(0.9, 0);
  rule.take(at(0, kGiB, 2 * kGiB, 100 * kGiB));
  EXPECT_DOUBLE_EQ(rule.interval(true), 0.25);
  EXPECT_DOUBLE_EQ(rule.interval(false), 0.5);
  rule.take(at(1, kGiB, 91500 * kMiB, 100 * kGiB));
  const double near = rule.interval(true);
  EXPECT_LT(near, 0.25);
  rule.take(at(2, kGiB, 91 * kGiB, 100 * kGiB));
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
  EXPECT_EQ(sample.available, 100000000 + int64_t{1000000} * 1024) << "this group may swap";
  EXPECT_EQ(oom_kills(memory_groups(system.paths()).back()), 3);
}

TEST(MemoryProbe, CodeThatRunsIsNotFree) {
  FakeSystem system;
  write_process(system, "0::/job\n");
  system.write("cgroup/job/memory.max", "1600000000\n");
  system.write("cgroup/job/memory.current", "900000000\n");
  system.write("cgroup/job/memory.stat", "file_mapped 60000000\nactive_file 100000000\ninactive_file 100000000\n");
  EXPECT_EQ(MemoryProbe(system.paths()).sample().available, 840000000);
  system.write("cgroup/job/memory.stat", "file_mapped 190000000\nactive_file 100000000\ninactive_file 100000000\n");
  EXPECT_EQ(MemoryProbe(system.paths()).sample().available, 800000000) << "but a large file that is mapped can go";
}

TEST(MemoryProbe, SwapAndPressureOfVersionTwo) {
  FakeSystem system;
  write_process(system, "0::/job\n");
  system.write("cgroup/job/memory.max", "1000000000\n");
  system.write("cgroup/job/memory.current", "900000000\n");
  system.write("cgroup/job/memory.stat", "anon 1\n");
  system.write("cgroup/job/memory.swap.max", "500000000\n");
  system.write("cgroup/job/memory.swap.current", "200000000\n");
  system.write(
      "cgroup/job/memory.pressure",
      "some avg10=1.00 avg60=0.00 avg300=0.00 total=7000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5000\n");
  const MemoryProbe probe(system.paths());
  EXPECT_EQ(probe.sample().available, 400000000);
  EXPECT_EQ(probe.sample().swap_free, 300000000);
  EXPECT_EQ(probe.stalled_us(), 5000);
  system.write("cgroup/job/memory.swap.max", "0\n");
  const MemorySample without = MemoryProbe(system.paths()).sample();
  EXPECT_EQ(without.available, 100000000);
  EXPECT_EQ(without.swap_free, 0) << "the machine's swap is not for this group";
}

TEST(MemoryProbe, SwapOfVersionOne) {
  FakeSystem system;
  write_process(system, "4:memory:/a\n");
  system.write("cgroup/memory/a/memory.limit_in_bytes", "1000000000\n");
  system.write("cgroup/memory/a/memory.usage_in_bytes", "900000000\n");
  system.write("cgroup/memory/a/memory.stat", "total_inactive_file 0\n");
  EXPECT_EQ(MemoryProbe(system.paths()).sample().available, 100000000 + int64_t{1000000} * 1024);
  system.write("cgroup/memory/a/memory.memsw.limit_in_bytes", "1200000000\n");
  system.write("cgroup/memory/a/memory.memsw.usage_in_bytes", "950000000\n");
  EXPECT_EQ(MemoryProbe(system.paths()).sample().available, 250000000);
  EXPECT_EQ(MemoryProbe(system.paths()).sample().swap_free, 150000000);
  EXPECT_EQ(MemoryProbe(system.paths()).stalled_us(), -1) << "the machine's says nothing about a container";
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
