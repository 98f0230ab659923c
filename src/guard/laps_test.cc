// SPDX-License-Identifier: Apache-2.0
#include "leadline/guard/laps.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "leadline/budget.h"

namespace leadline::guard {
namespace {

void touch(char* memory, size_t bytes) {
  for (size_t i = 0; i < bytes; i += 512) memory[i] = 1;
}

std::unique_ptr<char[]> block(size_t bytes) {
  std::unique_ptr<char[]> memory(new char[bytes]);
  touch(memory.get(), bytes);
  return memory;
}

template <typename Round>
LapReport run(int rounds, Round round) {
  Laps laps;
  for (int i = 0; i < rounds; ++i) {
    round(i);
    laps.lap();
  }
  return laps.report();
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // their heaps and shadows have a growth of their own
#else
constexpr bool kSanitized = false;
#endif

TEST(Laps, KeptBlocksGrow) {
  if (kSanitized) GTEST_SKIP() << "sanitizer";
  std::vector<std::unique_ptr<char[]>> kept;
  const LapReport report = run(20, [&](int) { kept.push_back(block(50'000)); });
  EXPECT_EQ(report.verdict, GrowthVerdict::kGrows) << report.text;
  EXPECT_NEAR(report.allocated.per_round, 50'016, 1000) << report.text;
  EXPECT_NE(report.text.find("grows"), std::string::npos);
}

TEST(Laps, MappedMemoryGrowsOutsideTheHeap) {
  if (kSanitized) GTEST_SKIP() << "sanitizer";
  constexpr size_t kBytes = 1 << 20;
  std::vector<char*> kept;
  const LapReport report = run(20, [&](int) {
    kept.push_back(
        static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
    touch(kept.back(), kBytes);
  });
  for (char* memory : kept) munmap(memory, kBytes);
  EXPECT_EQ(report.verdict, GrowthVerdict::kGrows) << report.text;
  EXPECT_EQ(report.memory.verdict, GrowthVerdict::kGrows) << report.text;
  EXPECT_NEAR(report.bytes_per_round, kBytes, 0.1 * kBytes) << report.text;
  EXPECT_NE(report.text.find("mapped by a library"), std::string::npos) << report.text;
}

TEST(Laps, BlocksOfManySizesThatAreGivenBackAreFlat) {
  if (kSanitized) GTEST_SKIP() << "sanitizer";
  uint64_t state = 42;
  const auto next = [&] { return state = state * 6364136223846793005ULL + 1442695040888963407ULL, state >> 33; };
  std::unique_ptr<char[]> last;
  const LapReport report = run(30, [&](int) {
    std::vector<std::unique_ptr<char[]>> blocks;
    for (int i = 0; i < 50; ++i) blocks.push_back(block(1 + next() % 300'000));
    last = std::move(blocks[next() % 50]);
  });
  EXPECT_EQ(report.verdict, GrowthVerdict::kFlat) << report.text;
}

TEST(Laps, ChargesToBudgetsCount) {
  const std::shared_ptr<Budget> budget = Budget::with_limit(1 << 30);
  const LapReport report = run(20, [&](int) { budget->charge(5000, MemoryCategory::kArena); });
  EXPECT_EQ(report.accounted.verdict, GrowthVerdict::kGrows);
  EXPECT_DOUBLE_EQ(report.accounted.per_round, 5000);
}

TEST(Laps, ObjectsOfTheCallerCount) {
  Laps laps;
  for (int i = 0; i < 20; ++i) laps.lap(1000 * i);
  const LapReport report = laps.report();
  EXPECT_EQ(report.verdict, GrowthVerdict::kGrows);
  EXPECT_EQ(report.objects.verdict, GrowthVerdict::kGrows);
  EXPECT_GT(report.bytes_per_round, 0);
}

TEST(Laps, TheFirstRoundsOfALongLoopDoNotDecide) {
  Laps laps;
  for (int i = 0; i < 3000; ++i) laps.lap(1000 * std::min(i, 60));
  EXPECT_EQ(laps.report().objects.verdict, GrowthVerdict::kFlat);
  Laps leaking;
  for (int i = 0; i < 3000; ++i) leaking.lap(1000 * i);
  EXPECT_EQ(leaking.report().objects.verdict, GrowthVerdict::kGrows);
  EXPECT_DOUBLE_EQ(leaking.report().objects.per_round, 1000);
}

TEST(Laps, FewRounds) {
  const LapReport report = run(5, [](int) {});
  EXPECT_EQ(report.verdict, GrowthVerdict::kTooFewRounds);
  EXPECT_NE(report.text.find("at least 12"), std::string::npos);
}

TEST(Laps, ManyRoundsNeedNoMoreMemory) {
  Laps laps;
  for (int i = 0; i < 200'000; ++i) laps.lap();
  EXPECT_EQ(laps.rounds(), 200'000);
  EXPECT_LE(laps.samples().size(), Laps::kMostSamples);
  if (!kSanitized) {
    EXPECT_EQ(laps.report().verdict, GrowthVerdict::kFlat) << laps.report().text;
  }
  int64_t last = 0;
  for (const LapSample& sample : laps.samples()) {
    EXPECT_GT(sample.round, last);
    last = sample.round;
  }
}

}  // namespace
}  // namespace leadline::guard
