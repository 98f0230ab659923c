// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/string_testing.h"

namespace leadline::ops {
namespace {

using Ints = std::vector<int32_t>;

TEST(Tile, RepeatsEveryAxis) {
  OpTester t("TILE");
  t.input<int32_t>({2, 2}, {1, 2, 3, 4}).input<int64_t>({2}, {2, 3}).output(DType::kInt32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{4, 6}));
  EXPECT_EQ(t.result<int32_t>(0), (Ints{1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4, 1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4}));
}

TEST(Tile, ZeroTimesAndScalars) {
  OpTester t("TILE");
  t.input<int32_t>({2}, {1, 2}).input<int32_t>({1}, {0}).output(DType::kInt32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{0}));
  OpTester s("TILE");
  s.input<int32_t>({}, {5}).input<int32_t>({0}, {}).output(DType::kInt32);
  s.run();
  EXPECT_EQ(s.result<int32_t>(0), (Ints{5}));
}

TEST(Tile, StringsAndEightAxes) {
  OpTester t("TILE");
  string_input(t, {2}, {"a", "bb"}).input<int32_t>({1}, {2}).output(DType::kString);
  t.run();
  EXPECT_EQ(string_result(t, 0), (std::vector<std::string>{"a", "bb", "a", "bb"}));
  OpTester wide("TILE");
  wide.input<int8_t>({1, 1, 1, 1, 1, 1, 1, 2}, {1, 2}).input<int32_t>({8}, {2, 1, 1, 1, 1, 1, 2, 1});
  wide.output(DType::kInt8);
  wide.run();
  EXPECT_EQ(wide.result<int8_t>(0), (std::vector<int8_t>{1, 2, 1, 2, 1, 2, 1, 2}));
}

TEST(Tile, RefusesBadCounts) {
  for (const auto& counts : {std::vector<int64_t>{-1, 1}, {INT64_MAX, 1}, {int64_t{1} << 40, int64_t{1} << 40}, {1}}) {
    OpTester t("TILE");
    t.input<int32_t>({2, 2}, {1, 2, 3, 4}).input<int64_t>({static_cast<int64_t>(counts.size())}, counts);
    t.output(DType::kInt32);
    EXPECT_THROW(t.run(), Error);
  }
}

TEST(Tile, RefusesTooManyStrings) {
  OpTester t("TILE");
  string_input(t, {1}, {"a"}).input<int64_t>({1}, {int64_t{1} << 40}).output(DType::kString);
  EXPECT_THROW(t.run(), Error);
}

TEST(BroadcastTo, StretchesOnesAndAddsAxes) {
  OpTester t("BROADCAST_TO");
  t.input<int32_t>({2, 1}, {1, 2}).input<int32_t>({3}, {2, 2, 3}).output(DType::kInt32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 2, 3}));
  EXPECT_EQ(t.result<int32_t>(0), (Ints{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}));
}

TEST(BroadcastTo, RefusesOtherSizes) {
  for (const auto& shape : {Ints{3, 2}, {2}, {2, -1}, {2, 2, 2, 2, 2, 2, 2, 2, 2}}) {
    OpTester t("BROADCAST_TO");
    t.input<int32_t>({2, 2}, {1, 2, 3, 4}).input<int32_t>({static_cast<int64_t>(shape.size())}, shape);
    t.output(DType::kInt32);
    EXPECT_THROW(t.run(), Error);
  }
}

TEST(Fill, NumbersAndStrings) {
  OpTester t("FILL");
  t.input<int64_t>({2}, {2, 2}, {}, false).input<float>({}, {1.5F}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 2}));
  EXPECT_EQ(t.result<float>(0), std::vector<float>(4, 1.5F));
  OpTester s("FILL");
  s.input<int32_t>({1}, {3});
  string_input(s, {}, {"xy"}).output(DType::kString);
  s.run();
  EXPECT_EQ(string_result(s, 0), (std::vector<std::string>{"xy", "xy", "xy"}));
}

TEST(Fill, ScalarAndNegative) {
  OpTester t("FILL");
  t.input<int32_t>({0}, {}).input<bool>({}, {true}).output(DType::kBool);
  t.run();
  EXPECT_EQ(t.result<uint8_t>(0), (std::vector<uint8_t>{1}));
  OpTester bad("FILL");
  bad.input<int32_t>({1}, {-1}).input<float>({}, {1}).output(DType::kFloat32);
  EXPECT_THROW(bad.run(), Error);
}

TEST(ZerosLike, HasTheShape) {
  OpTester t("ZEROS_LIKE");
  t.input<int64_t>({2}, {1, 2}).output(DType::kInt64);
  t.run();
  EXPECT_EQ(t.result<int64_t>(0), (std::vector<int64_t>{0, 0}));
}

}  // namespace
}  // namespace leadline::ops
