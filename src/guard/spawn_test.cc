// SPDX-License-Identifier: Apache-2.0
#include "guard/spawn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "core/cgroup.h"
#include "leadline/error.h"

namespace leadline::guard {
namespace {

SpawnRequest shell(const std::string& script) {
  SpawnRequest request;
  request.command = {"/bin/sh", "-c", script};
  request.environment = {"PATH=/usr/bin:/bin"};
  return request;
}

std::string read_all(int fd) {
  std::string text;
  char piece[4096];
  for (;;) {
    pollfd event = {fd, POLLIN, 0};
    poll(&event, 1, 10'000);
    const ssize_t size = read(fd, piece, sizeof piece);
    if (size <= 0) return text;
    text.append(piece, static_cast<size_t>(size));
  }
}

int reap(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

TEST(Spawn, OnlyDescriptorsThatAreAskedForReachTheChild) {
  const Descriptor kept(fcntl(0, F_DUPFD, 50));  // without O_CLOEXEC, as careless libraries open files
  const Descriptor lost(fcntl(0, F_DUPFD, 60));
  SpawnRequest request = shell("ls /proc/self/fd");
  request.inherited = {kept.get()};
  const Spawned child = spawn(request);
  const std::string list = "\n" + read_all(child.output.get());
  reap(child.pid);
  EXPECT_NE(list.find("\n" + std::to_string(kept.get()) + "\n"), std::string::npos) << list;
  EXPECT_EQ(list.find("\n" + std::to_string(lost.get()) + "\n"), std::string::npos) << list;
}

TEST(Spawn, AnyLimitHasARoomAboveIt) {
  EXPECT_EQ(data_limit(1000), 1000 + (int64_t{1} << 30));
  EXPECT_EQ(data_limit(int64_t{8} << 30), int64_t{12} << 30);
  EXPECT_EQ(data_limit(std::numeric_limits<int64_t>::max() - 5), std::numeric_limits<int64_t>::max());
}

TEST(Spawn, SignalsOfTheCallerAreNotTheChilds) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto handler = signal(SIGINT, SIG_IGN);
  const Spawned child = spawn(shell("grep -E 'Sig(Blk|Ign)' /proc/self/status"));
  signal(SIGINT, handler);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  const std::string text = read_all(child.output.get());
  reap(child.pid);
  unsigned long long blocks = 1;
  unsigned long long ignores = 1;
  ASSERT_EQ(std::sscanf(text.c_str(), "SigBlk: %llx SigIgn: %llx", &blocks, &ignores), 2) << text;
  constexpr unsigned long long kOfTheCLibrary = 3ULL << 31;  // 32 and 33: nothing else may change them
  EXPECT_EQ(blocks, 0U);
  EXPECT_EQ(ignores & ~kOfTheCLibrary, 0U);
}

TEST(Spawn, AFolderInThePathIsNoProgram) {
  const std::string folder = std::filesystem::temp_directory_path() / ("leadline-spawn-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder + "/first/true");
  const std::string before = std::getenv("PATH");
  setenv("PATH", (folder + "/first:" + before).c_str(), 1);
  SpawnRequest request;
  request.command = {"true"};
  const Spawned child = spawn(request);
  EXPECT_EQ(reap(child.pid), 0);
  request.command = {"no-such-program-of-leadline"};
  EXPECT_THROW(spawn(request), Error);
  request.command = {folder};  // cannot be executed
  EXPECT_THROW(spawn(request), Error);
  setenv("PATH", before.c_str(), 1);
  std::filesystem::remove_all(folder);
}

/// A new group of the unified hierarchy, with or without controllers; empty where none can be made.
std::string make_group() {
  for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    const std::string folder = mount + ("/leadline-spawn-test-" + std::to_string(getpid()));
    if (access((mount + std::string("/cgroup.controllers")).c_str(), F_OK) != 0) continue;
    if (mkdir(folder.c_str(), 0755) == 0) return folder;
  }
  return "";
}

TEST(Spawn, JoinsAGroupOfTheKernels) {
  const std::string group = make_group();
  if (group.empty()) GTEST_SKIP() << "no control group (v2) can be made here";
  Descriptor procs(open((group + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  SpawnRequest request = shell("cat /proc/self/cgroup; sleep 1000 & exec sleep 1000");
  request.cgroup_procs = procs.get();
  const Spawned child = spawn(request);
  EXPECT_TRUE(child.in_cgroup);
  const std::string name = "0::/" + std::filesystem::path(group).filename().string();
  pollfd event = {child.output.get(), POLLIN, 0};
  poll(&event, 1, 10'000);
  char piece[4096] = {};
  EXPECT_GT(read(child.output.get(), piece, sizeof piece - 1), 0);
  EXPECT_NE(std::string(piece).find(name), std::string::npos) << piece;
  std::ofstream(group + "/cgroup.kill") << "1";
  const int status = reap(child.pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(read_all(child.output.get()), "") << "its child is gone too";
  int attempts = 500;
  while (rmdir(group.c_str()) != 0 && --attempts > 0) usleep(2000);
  EXPECT_GT(attempts, 0);
}

TEST(Spawn, AGroupThatCannotBeJoinedIsDoneWithout) {
  const Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  SpawnRequest request = shell("exit 3");
  request.cgroup_procs = nothing.get();
  const Spawned child = spawn(request);
  EXPECT_FALSE(child.in_cgroup);
  EXPECT_EQ(WEXITSTATUS(reap(child.pid)), 3);
}

}  // namespace
}  // namespace leadline::guard
