// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_blocks.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace leadline::runtime {
namespace {

constexpr MemoryCategory kInOut = MemoryCategory::kInputsOutputs;

class MemoryBlocksTest : public ::testing::Test {
 protected:
  void expect_held(int64_t bytes) {
    EXPECT_EQ(budget->used(), bytes);
    EXPECT_EQ(accounts.ledger().total(), bytes);
  }

  std::shared_ptr<Budget> budget = Budget::with_limit(1024);
  Accounts accounts{budget};
  MemoryBlocks blocks{accounts, std::make_shared<PackedWeightsCache>(budget)};
};

TEST_F(MemoryBlocksTest, ATensorKeepsMemoryOfTheSameSize) {
  EXPECT_TRUE(blocks.take_tensor(3, 100, kInOut));
  const std::byte* first = blocks.tensor(3)->data();
  EXPECT_FALSE(blocks.take_tensor(3, 128, kInOut)) << "both take two cache lines";
  EXPECT_EQ(blocks.tensor(3)->data(), first);
  expect_held(128);
  EXPECT_TRUE(blocks.take_tensor(3, 200, kInOut));
  expect_held(256);
  blocks.drop_tensor(3);
  EXPECT_EQ(blocks.tensor(3), nullptr);
  expect_held(0);
}

TEST_F(MemoryBlocksTest, ARefusalLeavesNothingInEitherCount) {
  blocks.take_tensor(3, 100, kInOut);
  EXPECT_THROW(blocks.take_tensor(3, 2000, kInOut), BudgetError);
  EXPECT_TRUE(blocks.tensors().empty());
  blocks.take_persistent(1, 64);
  EXPECT_THROW(blocks.take_persistent(1, 2048), BudgetError);
  EXPECT_EQ(blocks.persistent(1), nullptr);
  EXPECT_THROW(blocks.take_arena(2, 2048), BudgetError);
  EXPECT_EQ(blocks.arena(2), nullptr);
  expect_held(0);
}

TEST_F(MemoryBlocksTest, DetachedArenasAreCountedUntilTheyAreGivenBack) {
  blocks.take_arena(0, 64);
  blocks.take_arena(1, 128);
  blocks.take_arena(2, 256);
  auto detached = blocks.detach_arenas(1);
  ASSERT_EQ(detached.size(), 2U);
  EXPECT_EQ(blocks.arena(1), nullptr);
  blocks.release();
  expect_held(128 + 256);
  for (auto& arena : detached) accounts.give_back(arena, MemoryCategory::kArena);
  expect_held(0);
}

TEST_F(MemoryBlocksTest, WhatIsTakenOverIsCountedOnce) {
  MemoryBlocks next(accounts, std::make_shared<PackedWeightsCache>(budget));
  blocks.take_tensor(0, 64, kInOut);
  blocks.take_persistent(0, 64);
  blocks.take_arena(0, 64);
  next.take_over(blocks);
  blocks.release();
  expect_held(128);
  EXPECT_FALSE(next.take_tensor(0, 64, kInOut));
  next.release();
  expect_held(0);
}

}  // namespace
}  // namespace leadline::runtime
