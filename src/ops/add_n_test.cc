// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

TEST(AddN, AddsAllInputs) {
  OpTester t("ADD_N");
  t.input<float>({2, 2}, {1, 2, 3, 4}).input<float>({2, 2}, {10, 20, 30, 40}).input<float>({2, 2}, {.5, .5, .5, .5});
  t.output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 2}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{11.5, 22.5, 33.5, 44.5}));
}

TEST(AddN, IntegersWrap) {
  OpTester t("ADD_N");
  t.input<int32_t>({}, {INT32_MAX}).input<int32_t>({}, {1}).output(DType::kInt32);
  t.run();
  EXPECT_EQ(t.result<int32_t>(0), (std::vector<int32_t>{INT32_MIN}));
}

TEST(AddN, ManyElementsOnTwoThreads) {
  OpTester t("ADD_N");
  std::vector<int32_t> values(100'001);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i);
  for (int i = 0; i < 5; ++i) t.input<int32_t>({100'001}, values);
  t.output(DType::kInt32).threads(2);
  t.run();
  for (int32_t& value : values) value *= 5;
  EXPECT_EQ(t.result<int32_t>(0), values);
}

TEST(AddN, EmptyTensors) {
  OpTester t("ADD_N");
  t.input<float>({0, 3}, {}).input<float>({0, 3}, {}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{0, 3}));
}

TEST(AddN, RefusesOtherShapesTypesAndAbsentInputs) {
  OpTester shape("ADD_N");
  shape.input<float>({2}, {1, 2}).input<float>({1}, {1}).output(DType::kFloat32);
  EXPECT_THROW(shape.run(), Error);
  OpTester type("ADD_N");
  type.input<float>({1}, {1}).input<int32_t>({1}, {1}).output(DType::kFloat32);
  EXPECT_THROW(type.run(), Error);
  OpTester absent("ADD_N");
  absent.input<float>({1}, {1}).input<float>({1}, {1}).absent_input().output(DType::kFloat32);
  EXPECT_THROW(absent.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
