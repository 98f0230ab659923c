// SPDX-License-Identifier: Apache-2.0
#include "runtime/packed_weights.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "leadline/error.h"

namespace leadline::runtime {
namespace {

const PackedKey kKey{0, 3, 256, "rows"};

TEST(PackedWeightsCache, PacksOnceWhileSomebodyHoldsThem) {
  const auto budget = Budget::with_limit(1024);
  PackedWeightsCache weights(budget);
  int packings = 0;
  const auto pack = [&](std::byte* memory) {
    ++packings;
    memory[255] = std::byte{7};
  };
  {
    const auto first = weights.acquire(kKey, pack);
    const auto second = weights.acquire(kKey, pack);
    EXPECT_EQ(first, second);
    EXPECT_EQ(first->data()[255], std::byte{7});
    EXPECT_EQ(packings, 1);
    EXPECT_EQ(budget->used(MemoryCategory::kPackedWeights), 256);
    EXPECT_TRUE(weights.holds(kKey));
    EXPECT_FALSE(weights.holds({0, 3, 256, "columns"}));
  }
  EXPECT_FALSE(weights.holds(kKey));
  EXPECT_EQ(budget->used(), 0);
  weights.acquire(kKey, pack);
  EXPECT_EQ(packings, 2);
}

TEST(PackedWeightsCache, AFailedPackingIsForgotten) {
  const auto budget = Budget::with_limit(1024);
  PackedWeightsCache weights(budget);
  EXPECT_THROW(weights.acquire(kKey, [](std::byte*) { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_FALSE(weights.holds(kKey));
  EXPECT_EQ(budget->used(), 0);
  EXPECT_THROW(weights.acquire({0, 0, 2048, "large"}, [](std::byte*) {}), BudgetError);
  EXPECT_NE(weights.acquire(kKey, [](std::byte*) {}), nullptr);
}

TEST(PackedWeightsCache, ThreadsThatAskTogetherGetOnePacking) {
  const auto budget = Budget::with_limit(1024);
  PackedWeightsCache weights(budget);
  std::atomic<int> packings = 0;
  std::vector<std::shared_ptr<const Buffer>> held(4);
  std::vector<std::thread> threads;
  for (auto& slot : held) {
    threads.emplace_back([&] {
      slot = weights.acquire(kKey, [&](std::byte* memory) {
        ++packings;
        memory[0] = std::byte{1};
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(packings, 1);
  for (const auto& memory : held) EXPECT_EQ(memory->data()[0], std::byte{1});
}

}  // namespace
}  // namespace leadline::runtime
