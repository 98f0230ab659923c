// SPDX-License-Identifier: Apache-2.0
#include "ops/one_hot.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

using Floats = std::vector<float>;

OpTester one_hot(int32_t axis, const Shape& shape, const std::vector<int64_t>& indices, int32_t depth) {
  OneHotAttributes a;
  a.axis = axis;
  OpTester t("ONE_HOT");
  t.attributes(a).input<int64_t>(shape, indices).input<int32_t>({}, {depth}, {}, false);
  t.input<float>({}, {5}).input<float>({1}, {-1}).output(DType::kFloat32);
  t.run();
  return t;
}

TEST(OneHot, LastAxis) {
  const OpTester t = one_hot(-1, {2}, {1, 0}, 3);
  EXPECT_EQ(t.shape(0), (Shape{2, 3}));
  EXPECT_EQ(t.result<float>(0), (Floats{-1, 5, -1, 5, -1, -1}));
}

TEST(OneHot, FirstAxis) {
  const OpTester t = one_hot(0, {2}, {1, 0}, 2);
  EXPECT_EQ(t.result<float>(0), (Floats{-1, 5, 5, -1}));
}

TEST(OneHot, IndicesOutsideAreOff) {
  EXPECT_EQ(one_hot(-1, {3}, {-1, 2, int64_t{1} << 32}, 2).result<float>(0), Floats(6, -1));
}

TEST(OneHot, ScalarsAndEmptyTensors) {
  EXPECT_EQ(one_hot(-1, {}, {1}, 2).result<float>(0), (Floats{-1, 5}));
  EXPECT_EQ(one_hot(0, {0}, {}, 2).shape(0), (Shape{2, 0}));
  EXPECT_EQ(one_hot(-1, {2}, {0, 0}, 0).shape(0), (Shape{2, 0}));
}

TEST(OneHot, RefusesBadAxesAndDepths) {
  EXPECT_THROW(one_hot(2, {2}, {0, 0}, 2), Error);
  EXPECT_THROW(one_hot(-2, {2}, {0, 0}, 2), Error);
  EXPECT_THROW(one_hot(-1, {2}, {0, 0}, -1), Error);
}

}  // namespace
}  // namespace leadline::ops
