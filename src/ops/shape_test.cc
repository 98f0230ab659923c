// SPDX-License-Identifier: Apache-2.0
#include "ops/shape.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

TEST(ShapeOp, GivesTheShapeWithoutTheData) {
  OpTester t("SHAPE");
  t.input<float>({2, 0, 3}, {}, {}, false).output(DType::kInt64);
  EXPECT_TRUE(t.infer(false));
  t.run();
  EXPECT_EQ(t.result<int64_t>(0), (std::vector<int64_t>{2, 0, 3}));
  OpTester scalar("SHAPE");
  scalar.input<float>({}, {1}).output(DType::kInt32);
  scalar.run();
  EXPECT_EQ(scalar.shape(0), (Shape{0}));
}

TEST(Rank, CountsAxes) {
  OpTester t("RANK");
  t.input<float>({2, 1}, {1, 2}).output(DType::kInt32);
  t.run();
  EXPECT_EQ(t.result<int32_t>(0), (std::vector<int32_t>{2}));
}

template <typename T>
std::vector<T> range(T start, T limit, T delta) {
  OpTester t("RANGE");
  t.template input<T>({}, {start}).template input<T>({}, {limit}).template input<T>({}, {delta}).output(dtype_of<T>());
  t.run();
  return t.template result<T>(0);
}

TEST(Range, UpDownAndEmpty) {
  EXPECT_EQ(range<int32_t>(0, 5, 2), (std::vector<int32_t>{0, 2, 4}));
  EXPECT_EQ(range<int64_t>(3, -3, -2), (std::vector<int64_t>{3, 1, -1}));
  EXPECT_EQ(range<int32_t>(3, 3, 1), (std::vector<int32_t>{}));
  EXPECT_EQ(range<float>(0, 1, 0.4F), (std::vector<float>{0, 0.4F, 0.8F}));
}

TEST(Range, EndsOfTheIntegersAreSafe) {
  EXPECT_EQ(range<int32_t>(INT32_MIN, INT32_MAX, INT32_MAX), (std::vector<int32_t>{INT32_MIN, -1, INT32_MAX - 1}));
  EXPECT_EQ(range<int64_t>(INT64_MAX, INT64_MIN, INT64_MIN), (std::vector<int64_t>{INT64_MAX, -1}));
  EXPECT_THROW(range<int32_t>(INT32_MIN, INT32_MAX, 1), Error);
}

TEST(Range, RefusesWhatLeadsNowhere) {
  EXPECT_THROW(range<int32_t>(0, 5, 0), Error);
  EXPECT_THROW(range<int32_t>(0, 5, -1), Error);
  EXPECT_THROW(range<float>(0, std::nanf(""), 1), Error);
  EXPECT_THROW(range<float>(0, INFINITY, 1), Error);
}

TEST(BroadcastArgs, ShapesAsData) {
  OpTester t("BROADCAST_ARGS");
  t.input<int32_t>({3}, {2, 1, 3}).input<int32_t>({2}, {4, 1}).output(DType::kInt32);
  t.run();
  EXPECT_EQ(t.result<int32_t>(0), (std::vector<int32_t>{2, 4, 3}));
  OpTester bad("BROADCAST_ARGS");
  bad.input<int64_t>({1}, {2}).input<int64_t>({1}, {3}).output(DType::kInt64);
  EXPECT_THROW(bad.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
