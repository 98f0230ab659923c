// SPDX-License-Identifier: Apache-2.0
#include "core/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "core/error.h"

namespace leadline {
namespace {

constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();
constexpr auto kScratch = MemoryCategory::kScratch;

class BufferSizes : public testing::TestWithParam<int64_t> {};

TEST_P(BufferSizes, AreZeroedAlignedWritableAndCharged) {
  const auto budget = Budget::with_limit(int64_t{1} << 30);
  for (int round = 0; round < 3; ++round) {  // later rounds may get memory that was written before
    const Buffer buffer(budget, GetParam(), kScratch);
    EXPECT_EQ(buffer.bytes(), align_up(GetParam()));
    EXPECT_EQ(budget->used(kScratch), align_up(GetParam()));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kAlignment, 0U);
    EXPECT_TRUE(
        std::all_of(buffer.data(), buffer.data() + buffer.bytes(), [](std::byte b) { return b == std::byte{}; }));
    std::memset(buffer.data(), 0x5a, static_cast<size_t>(buffer.bytes()));
  }
  EXPECT_EQ(budget->used(), 0);
  EXPECT_EQ(budget->peak(), align_up(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(SmallAndMapped, BufferSizes,
                         testing::Values(1, 63, 64, 65, 4096, (256 << 10) - 64, 256 << 10, (256 << 10) + 1, 3 << 20));

TEST(Buffer, ZeroBytesIsLegalAndFree) {
  const auto budget = Budget::with_limit(0);
  Buffer buffer(budget, 0, kScratch);
  EXPECT_EQ(buffer.bytes(), 0);
  EXPECT_FALSE(buffer);
  const Buffer moved(std::move(buffer));
  EXPECT_EQ(budget->used(), 0);
}

TEST(Buffer, MovingTakesTheMemoryAndItsChargeAlong) {
  const auto budget = Budget::with_limit(1 << 20);
  Buffer first(budget, 100, kScratch);
  std::byte* const data = first.data();
  Buffer second(std::move(first));
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(budget->used(), 128);
  Buffer third(budget, 1000, MemoryCategory::kArena);
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(budget->used(), 128);
  EXPECT_EQ(budget->used(MemoryCategory::kArena), 0);
  third = Buffer();
  EXPECT_EQ(budget->used(), 0);
}

TEST(Buffer, KeepsItsBudgetAlive) {
  auto budget = Budget::with_limit(1 << 20);
  const std::weak_ptr<Budget> watch = budget;
  {
    const Buffer buffer(std::move(budget), 100, kScratch);
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

TEST(Buffer, AboveTheBudgetIsRefusedBeforeAllocation) {
  const auto budget = Budget::with_limit(127);
  EXPECT_THROW(Buffer(budget, 65, kScratch), BudgetError);
  EXPECT_EQ(budget->used(), 0);
  EXPECT_NO_THROW(Buffer(budget, 64, kScratch));
}

TEST(Buffer, RefusalByTheSystemGivesTheChargeBack) {
  const auto budget = Budget::with_limit(kMaxInt64);
  for (const int64_t bytes : {int64_t{1} << 60, kMaxInt64 - kAlignment, kMaxInt64 - 1, kMaxInt64}) {
    try {
      const Buffer buffer(budget, bytes, kScratch);
      ADD_FAILURE() << "got " << bytes << " bytes";
    } catch (const BudgetError& error) {
      EXPECT_NE(std::string(error.what()).find("the system refused"), std::string::npos) << error.what();
      EXPECT_GE(error.needed(), bytes);
    }
    EXPECT_EQ(budget->used(), 0);
  }
}

TEST(Buffer, RefusesNegativeSizesAndMissingBudgets) {
  EXPECT_THROW(Buffer(Budget::with_limit(10), -1, kScratch), Error);
  EXPECT_THROW(Buffer(nullptr, 10, kScratch), Error);
}

}  // namespace
}  // namespace leadline
