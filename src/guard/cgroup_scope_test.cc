// SPDX-License-Identifier: Apache-2.0
#include "guard/cgroup_scope.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/cpp/fake_system.h"

namespace leadline::guard {
namespace {

constexpr GuardLimits kLimits = {.memory_bytes = 1000000, .processes = 64};

std::string text(const CgroupScope& scope, const char* file) {
  return read_text_file(scope.folder() + "/" + file).value_or("missing");
}

TEST(CgroupScope, NoneWithoutADelegatedMemoryController) {
  FakeSystem system;
  EXPECT_FALSE(CgroupScope::make(kLimits, system.paths()));
  system.write("proc/self/cgroup", "4:memory:/a\n0::/a/b\n");
  system.write("cgroup/a/b/memory.max", "max\n");
  system.write("cgroup/a/cgroup.subtree_control", "cpu pids memory_recursive\n");
  EXPECT_FALSE(CgroupScope::make(kLimits, system.paths()));
}

TEST(CgroupScope, StandsBesideTheCallersGroupWithItsLimits) {
  FakeSystem system;
  system.write("proc/self/cgroup", "0::/user/app/kernel\n");
  system.write("cgroup/user/app/kernel/memory.max", "max\n");
  system.write("cgroup/user/app/cgroup.subtree_control", "cpu memory pids\n");
  const std::optional<CgroupScope> scope = CgroupScope::make(kLimits, system.paths());
  ASSERT_TRUE(scope);
  EXPECT_EQ(std::filesystem::path(scope->folder()).parent_path(), system.paths().cgroup + "/user/app");
  EXPECT_EQ(text(*scope, "memory.max"), "1000000");
  EXPECT_EQ(text(*scope, "memory.oom.group"), "1");
  EXPECT_EQ(text(*scope, "memory.swap.max"), "0");
  EXPECT_EQ(text(*scope, "pids.max"), "64");
  EXPECT_GE(scope->procs(), 0);
}

TEST(CgroupScope, DoesNotEscapeALimitOfTheCaller) {
  FakeSystem system;
  system.write("proc/self/cgroup", "0::/box\n");
  system.write("cgroup/box/memory.max", "5000000\n");
  system.write("cgroup/cgroup.subtree_control", "memory\n");
  EXPECT_FALSE(CgroupScope::make(kLimits, system.paths()));
  system.write("cgroup/box/cgroup.subtree_control", "memory\n");  // below it is under it
  EXPECT_TRUE(CgroupScope::make(kLimits, system.paths()));
}

TEST(CgroupScope, ReadsCountersAndKills) {
  FakeSystem system;
  system.write("proc/self/cgroup", "0::/\n");
  system.write("cgroup/cgroup.subtree_control", "memory\n");
  std::optional<CgroupScope> scope = CgroupScope::make(kLimits, system.paths());
  ASSERT_TRUE(scope);
  EXPECT_EQ(scope->peak_bytes(), 0);
  EXPECT_EQ(scope->oom_kills(), 0);
  const std::string folder = "cgroup/" + std::filesystem::path(scope->folder()).filename().string();
  system.write(folder + "/memory.peak", "123456\n");
  system.write(folder + "/memory.current", "7\n");
  system.write(folder + "/memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 3\noom_group_kill 1\n");
  system.write(folder + "/pids.events", "max 2\n");
  EXPECT_EQ(scope->peak_bytes(), 123456);
  EXPECT_EQ(scope->current_bytes(), 7);
  system.write(folder + "/memory.stat", "anon 5000\nfile 99999\nkernel 1\nshmem 300\n");
  EXPECT_EQ(scope->current_bytes(), 5300) << "the cache of files does not count as memory";
  EXPECT_EQ(scope->oom_kills(), 3);
  EXPECT_TRUE(scope->hit_process_limit());
  scope->kill_all();
  EXPECT_EQ(text(*scope, "cgroup.kill"), "1");
}

}  // namespace
}  // namespace leadline::guard
