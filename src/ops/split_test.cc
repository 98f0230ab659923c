// SPDX-License-Identifier: Apache-2.0
#include "ops/split.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

using Floats = std::vector<float>;

SplitAttributes into(int32_t parts) {
  SplitAttributes a;
  a.num_splits = parts;
  return a;
}

UnpackAttributes unpacking(int32_t count, int32_t axis) {
  UnpackAttributes a;
  a.num = count;
  a.axis = axis;
  return a;
}

TEST(Split, EqualPartsAlongAnAxis) {
  OpTester t("SPLIT");
  t.attributes(into(2)).input<int32_t>({}, {-1}).input<float>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  t.output(DType::kFloat32).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 2}));
  EXPECT_EQ(t.result<float>(0), (Floats{1, 2, 5, 6}));
  EXPECT_EQ(t.result<float>(1), (Floats{3, 4, 7, 8}));
}

TEST(Split, RefusesUnequalPartsAndWrongCounts) {
  OpTester uneven("SPLIT");
  uneven.attributes(into(2)).input<int32_t>({}, {0}).input<float>({3}, {1, 2, 3});
  uneven.output(DType::kFloat32).output(DType::kFloat32);
  EXPECT_THROW(uneven.run(), Error);
  OpTester count("SPLIT");
  count.attributes(into(3)).input<int32_t>({}, {0}).input<float>({3}, {1, 2, 3}).output(DType::kFloat32);
  EXPECT_THROW(count.run(), Error);
}

TEST(SplitV, SizesWithOneLeftOpen) {
  OpTester t("SPLIT_V");
  t.attributes(into(3)).input<int8_t>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}).input<int64_t>({3}, {1, -1, 0});
  t.input<int32_t>({}, {1}, {}, false);
  t.output(DType::kInt8).output(DType::kInt8).output(DType::kInt8);
  EXPECT_FALSE(t.infer(false));
  t.run();
  EXPECT_EQ(t.result<int8_t>(0), (std::vector<int8_t>{1, 5}));
  EXPECT_EQ(t.result<int8_t>(1), (std::vector<int8_t>{2, 3, 4, 6, 7, 8}));
  EXPECT_EQ(t.shape(2), (Shape{2, 0}));
}

TEST(SplitV, RefusesSizesThatDoNotAddUp) {
  for (const std::vector<int32_t>& sizes : {std::vector<int32_t>{1, 2}, {3, 2}, {-1, -1}, {5, -1}, {-2, 6}}) {
    OpTester t("SPLIT_V");
    t.attributes(into(2)).input<float>({4}, {1, 2, 3, 4}).input<int32_t>({2}, sizes).input<int32_t>({}, {0});
    t.output(DType::kFloat32).output(DType::kFloat32);
    EXPECT_THROW(t.run(), Error);
  }
}

TEST(Unpack, DropsTheAxis) {
  OpTester t("UNPACK");
  t.attributes(unpacking(3, -1)).input<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  t.output(DType::kFloat32).output(DType::kFloat32).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2}));
  EXPECT_EQ(t.result<float>(0), (Floats{1, 4}));
  EXPECT_EQ(t.result<float>(2), (Floats{3, 6}));
}

TEST(Unpack, RefusesAWrongCount) {
  OpTester t("UNPACK");
  t.attributes(unpacking(2, 0)).input<float>({3}, {1, 2, 3}).output(DType::kFloat32).output(DType::kFloat32);
  EXPECT_THROW(t.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
