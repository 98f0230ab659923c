// SPDX-License-Identifier: Apache-2.0
#include "guard/allocation_gate.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <thread>
#include <vector>

#include "guard/flight_testing.h"
#include "guard/followed_blocks.h"
#include "tests/support/cpp/fake_system.h"

namespace leadline::guard {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

void* map(size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

/// A container with so much left, and a gate for it.
class Gate : public testing::Test {
 protected:
  ~Gate() override { gate::open(); }

  void close(int64_t left, gate::GateLimits limits = {}) {
    system_.write("proc/self/statm", "100000 20000 1000 1 0 70000 0\n");
    system_.write("proc/self/cgroup", "0::/job\n");
    system_.write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 15000000 kB\n");
    system_.write("cgroup/job/memory.max", std::to_string(1024 * kMiB));
    system_.write("cgroup/job/memory.stat", "anon 1\n");
    set_left(left);
    gate::close(limits, system_.paths());
  }
  void set_left(int64_t left) { system_.write("cgroup/job/memory.current", std::to_string(1024 * kMiB - left)); }
  static bool take(size_t bytes) {
    if (!gate::admit(bytes)) return false;
    gate::gave(nullptr, bytes);
    return true;
  }
  static constexpr int64_t kReserve = 1024 * kMiB * 4 / 100;

  FakeSystem system_;
};

TEST_F(Gate, IsOpenWithoutAWatch) {
  EXPECT_TRUE(take(size_t{1} << 60));
  EXPECT_EQ(gate::reserve_of(1024 * kMiB, 0.92) / kMiB, kReserve / kMiB);
}

TEST_F(Gate, RefusesWhatWouldCutIntoTheReserve) {
  close(500 * kMiB);
  EXPECT_FALSE(take(500 * kMiB));
  EXPECT_FALSE(take(460 * kMiB));
  EXPECT_TRUE(take(400 * kMiB));
  const Refusal last = gate::last_refusal();
  EXPECT_EQ(last.requested, 460 * kMiB);
  EXPECT_EQ(last.available, 500 * kMiB);
  EXPECT_TRUE(last.container);
  EXPECT_NEAR(static_cast<double>(last.reserve), static_cast<double>(kReserve), 10.0);
  EXPECT_FALSE(take(~size_t{0} / 2)) << "sums stay in range";
  EXPECT_EQ(gate::in_flight.load(), 0);
  EXPECT_TRUE(take(400 * kMiB)) << "the one before was freed: what counts is what there is";
}

TEST_F(Gate, ManySmallBlocksThatWereTouchedAreNotPromised) {
  system_.write("cgroup/job/memory.swap.max", "max\n");
  close(500 * kMiB);
  system_.write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 15000000 kB\nSwapTotal: 4 kB\nSwapFree: 4 kB\n");
  constexpr size_t kBlocks = 16000;
  const size_t bytes = gate::kFollowed;
  char* const memory = static_cast<char*>(map(bytes + 16 * kBlocks));
  ASSERT_NE(memory, nullptr);
  std::memset(memory, 1, bytes + 16 * kBlocks);
  for (size_t i = 0; i < kBlocks; ++i) {  // they overlap, which is nothing to the gate
    gate::in_flight.fetch_add(static_cast<int64_t>(bytes));
    gate::gave(memory + 16 * i, bytes);
  }
  EXPECT_TRUE(take(300 * kMiB)) << gate::last_refusal().promised;
  munmap(memory, bytes + 16 * kBlocks);
}

TEST_F(Gate, PromisesAreKept) {
  close(500 * kMiB);
  const size_t bytes = 300 * kMiB;
  void* const block = map(bytes);
  ASSERT_TRUE(gate::admit(bytes));
  gate::gave(block, bytes);
  EXPECT_FALSE(take(300 * kMiB)) << "nothing is touched yet, and all of it will be";
  EXPECT_EQ(gate::last_refusal().promised, 300 * kMiB);
  std::memset(block, 1, bytes);
  set_left(200 * kMiB);
  system_.write("proc/self/statm", "200000 100000 1000 1 0 170000 0\n");
  EXPECT_TRUE(take(100 * kMiB));
  EXPECT_FALSE(take(190 * kMiB));
  EXPECT_LT(gate::last_refusal().promised, 4 * kMiB);
  gate::takes_back(block);
  munmap(block, bytes);
}

TEST_F(Gate, SmallRequestsMayUseTheReserve) {
  close(30 * kMiB);
  EXPECT_FALSE(take(2 * kMiB));
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(gate::admit_small(1000));
  set_left(5 * kMiB);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(gate::admit_small(1000)) << "this process did not grow";
  system_.write("proc/self/statm", "100000 30000 1000 1 0 70000 0\n");
  int refused = 0;
  for (int i = 0; i < 1000; ++i) refused += gate::admit_small(1000) ? 0 : 1;
  EXPECT_EQ(refused, 1) << "once, until it grew on";
}

TEST_F(Gate, ALimitOfTheProcess) {
  const int64_t resident = int64_t{20000} * getpagesize();
  close(900 * kMiB, {.fraction = 0.92, .resident_limit = resident + 100 * kMiB});
  EXPECT_TRUE(take(100 * kMiB));
  EXPECT_FALSE(take(200 * kMiB));
  EXPECT_TRUE(gate::last_refusal().own_limit);
}

TEST_F(Gate, AForkedChildIsNotAsked) {
  close(100 * kMiB);
  EXPECT_FALSE(take(500 * kMiB));
  EXPECT_EQ(run_child([] { _exit(gate::admit(500 * kMiB) ? 0 : 1); }), 0);
  EXPECT_FALSE(take(500 * kMiB));
}

TEST_F(Gate, ManyThreadsAtOnce) {
  close(500 * kMiB);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 300; ++round) {
        const size_t bytes = gate::kFollowed + static_cast<size_t>(round) * 4096;
        void* const block = map(bytes);
        if (gate::admit(bytes)) {
          gate::gave(block, bytes);
          gate::takes_back(block);
        }
        munmap(block, bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(gate::in_flight.load(), 0);
}

TEST(FollowedBlocks, KnowsWhatIsTouched) {
  FollowedBlocks blocks;
  blocks.open("/proc/self/pagemap");
  const size_t bytes = 64 * kMiB;
  auto* const memory = static_cast<std::byte*>(map(bytes));
  blocks.add(reinterpret_cast<uintptr_t>(memory), bytes);
  EXPECT_EQ(blocks.untouched(), 64 * kMiB);
  std::memset(memory, 1, bytes / 2);
  EXPECT_NEAR(static_cast<double>(blocks.look(1)), 32.0 * kMiB, 3.0 * kMiB);
  std::memset(memory, 1, bytes);
  EXPECT_EQ(blocks.look(1), 0);
  EXPECT_EQ(blocks.total(), 64 * kMiB);
  EXPECT_EQ(blocks.remove(reinterpret_cast<uintptr_t>(memory)), bytes);
  EXPECT_EQ(blocks.remove(reinterpret_cast<uintptr_t>(memory)), 0U);
  EXPECT_EQ(blocks.total(), 0);
  munmap(memory, bytes);
}

TEST(FollowedBlocks, ForgetsWhatWasFreedBehindItsBack) {
  FollowedBlocks blocks;
  blocks.open("/proc/self/pagemap");
  void* const memory = map(64 * kMiB);
  blocks.add(reinterpret_cast<uintptr_t>(memory), 64 * kMiB);
  munmap(memory, 64 * kMiB);
  EXPECT_EQ(blocks.look(1), 0);
  EXPECT_EQ(blocks.total(), 0);
}

TEST(FollowedBlocks, ManyThatComeAndGo) {
  FollowedBlocks blocks;
  for (uintptr_t i = 1; i <= 20000; ++i) blocks.add(i * 65536, 65536);
  for (uintptr_t i = 1; i <= 20000; i += 2) EXPECT_EQ(blocks.remove(i * 65536), 65536U);
  for (uintptr_t i = 1; i <= 20000; ++i) EXPECT_EQ(blocks.bytes_of(i * 65536), i % 2 == 0 ? 65536U : 0U);
  EXPECT_EQ(blocks.total(), int64_t{10000} * 65536);
}

}  // namespace
}  // namespace leadline::guard
