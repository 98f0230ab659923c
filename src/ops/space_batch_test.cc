// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

using Ints = std::vector<int32_t>;

OpTester run(const char* op, const Shape& shape, const Ints& data, const Ints& block, const Ints& margins) {
  OpTester t(op);
  const auto axes = static_cast<int64_t>(block.size());
  t.input<int32_t>(shape, data).input<int32_t>({axes}, block).input<int32_t>({axes, 2}, margins).output(DType::kInt32);
  t.run();
  return t;
}

TEST(SpaceToBatch, EverySecondPixel) {
  const OpTester t = run("SPACE_TO_BATCH_ND", {1, 2, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8}, {2, 2}, {0, 0, 0, 0});
  EXPECT_EQ(t.shape(0), (Shape{4, 1, 2, 1}));
  EXPECT_EQ(t.result<int32_t>(0), (Ints{1, 3, 2, 4, 5, 7, 6, 8}));
}

TEST(SpaceToBatch, Padding) {
  const OpTester t = run("SPACE_TO_BATCH_ND", {1, 3, 1}, {1, 2, 3}, {2}, {2, 1});
  EXPECT_EQ(t.shape(0), (Shape{2, 3, 1}));
  EXPECT_EQ(t.result<int32_t>(0), (Ints{0, 1, 3, 0, 2, 0}));
}

TEST(SpaceToBatch, PadsWithTheZeroPoint) {
  OpTester t("SPACE_TO_BATCH_ND");
  t.input<int8_t>({1, 1, 1, 1}, {9}, quantized(1, -5)).input<int32_t>({2}, {1, 2}).input<int32_t>({2, 2}, {0, 0, 1, 0});
  t.output(DType::kInt8, quantized(1, -5));
  t.run();
  EXPECT_EQ(t.result<int8_t>(0), (std::vector<int8_t>{-5, 9}));
}

TEST(BatchToSpace, UndoesSpaceToBatch) {
  Ints data(2 * 5 * 7 * 3);
  std::iota(data.begin(), data.end(), 1);
  const OpTester there = run("SPACE_TO_BATCH_ND", {2, 5, 7, 3}, data, {2, 3}, {1, 2, 0, 2});
  EXPECT_EQ(there.shape(0), (Shape{12, 4, 3, 3}));
  const OpTester back = run("BATCH_TO_SPACE_ND", there.shape(0), there.result<int32_t>(0), {2, 3}, {1, 2, 0, 2});
  EXPECT_EQ(back.shape(0), (Shape{2, 5, 7, 3}));
  EXPECT_EQ(back.result<int32_t>(0), data);
}

TEST(SpaceBatch, RefusesBadBlocksAndMargins) {
  EXPECT_THROW(run("SPACE_TO_BATCH_ND", {1, 3, 1}, {1, 2, 3}, {2}, {0, 0}), Error);
  EXPECT_THROW(run("SPACE_TO_BATCH_ND", {1, 3, 1}, {1, 2, 3}, {0}, {0, 0}), Error);
  EXPECT_THROW(run("SPACE_TO_BATCH_ND", {1, 3, 1}, {1, 2, 3}, {1}, {-1, 1}), Error);
  EXPECT_THROW(run("BATCH_TO_SPACE_ND", {3, 1, 1}, {1, 2, 3}, {2}, {0, 0}), Error);
  EXPECT_THROW(run("BATCH_TO_SPACE_ND", {2, 1, 1}, {1, 2}, {2}, {2, 1}), Error);
}

}  // namespace
}  // namespace leadline::ops
