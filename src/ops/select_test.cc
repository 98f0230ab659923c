// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

TEST(Select, ConditionPerRow) {
  OpTester t("SELECT");
  t.input<bool>({2}, {true, false}).input<int16_t>({2, 2}, {1, 2, 3, 4}).input<int16_t>({2, 2}, {5, 6, 7, 8});
  t.output(DType::kInt16);
  t.run();
  EXPECT_EQ(t.result<int16_t>(0), (std::vector<int16_t>{1, 2, 7, 8}));
}

TEST(Select, ScalarConditionTakesOneWhole) {
  OpTester t("SELECT");
  t.input<bool>({}, {false}).input<float>({3}, {1, 2, 3}).input<float>({3}, {4, 5, 6}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{4, 5, 6}));
}

TEST(Select, DoesNotBroadcastValues) {
  OpTester t("SELECT");
  t.input<bool>({2}, {true, false}).input<float>({2}, {1, 2}).input<float>({1}, {4}).output(DType::kFloat32);
  EXPECT_THROW(t.run(), Error);
  OpTester condition("SELECT");
  condition.input<bool>({3}, {true, false, true}).input<float>({2}, {1, 2}).input<float>({2}, {4, 5});
  condition.output(DType::kFloat32);
  EXPECT_THROW(condition.run(), Error);
}

TEST(SelectV2, BroadcastsAllThree) {
  OpTester t("SELECT_V2");
  t.input<bool>({2, 1}, {true, false}).input<int64_t>({3}, {1, 2, 3}).input<int64_t>({}, {9}).output(DType::kInt64);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 3}));
  EXPECT_EQ(t.result<int64_t>(0), (std::vector<int64_t>{1, 2, 3, 9, 9, 9}));
}

TEST(SelectV2, OneElementKeepsTheWrittenShape) {
  OpTester t("SELECT_V2");
  t.input<bool>({1}, {true}).input<float>({1, 1}, {3}).input<float>({}, {4}).output(DType::kFloat32, {}, {1});
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{3}));
}

TEST(Where, ListsCoordinatesInOrder) {
  OpTester t("WHERE");
  t.input<bool>({2, 3}, {true, false, false, false, true, true}, {}, false).output(DType::kInt64);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{3, 2}));
  EXPECT_EQ(t.result<int64_t>(0), (std::vector<int64_t>{0, 0, 1, 1, 1, 2}));
}

TEST(Where, NothingFoundAndEmptyConditions) {
  OpTester none("WHERE");
  none.input<int32_t>({2}, {0, 0}).output(DType::kInt64);
  none.run();
  EXPECT_EQ(none.shape(0), (Shape{0, 1}));
  OpTester empty("WHERE");
  empty.input<float>({0, 2, 2}, {}).output(DType::kInt64);
  empty.run();
  EXPECT_EQ(empty.shape(0), (Shape{0, 3}));
  OpTester scalar("WHERE");
  scalar.input<bool>({}, {true}).output(DType::kInt64);
  EXPECT_THROW(scalar.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
