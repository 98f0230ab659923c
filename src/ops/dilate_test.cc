// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/op_tester.h"

namespace leadline::ops {
namespace {

template <typename T>
std::pair<Shape, std::vector<T>> dilated(const Shape& shape, const std::vector<T>& values,
                                         const std::vector<int32_t>& dilations, T padding, bool known = true) {
  OpTester t("DILATE");
  t.input<T>(shape, values);
  t.input<int32_t>({static_cast<int64_t>(dilations.size())}, dilations, {}, known);
  t.input<T>({}, {padding}).output(dtype_of<T>());
  EXPECT_EQ(t.infer(false), known);
  t.run();
  return {t.shape(0), t.result<T>(0)};
}

TEST(Dilate, PutsPaddingBetweenElements) {
  for (const bool known : {true, false}) {
    const auto [shape, values] = dilated<int32_t>({2, 2}, {1, 2, 3, 4}, {2, 3}, -1, known);
    EXPECT_EQ(shape, (Shape{3, 4}));
    EXPECT_EQ(values, (std::vector<int32_t>{1, -1, -1, 2, -1, -1, -1, -1, 3, -1, -1, 4}));
  }
}

TEST(Dilate, OneLeavesAnAxisAsItIs) {
  EXPECT_EQ(dilated<int8_t>({2, 2}, {1, 2, 3, 4}, {1, 1}, 9).second, (std::vector<int8_t>{1, 2, 3, 4}));
  EXPECT_EQ(dilated<int8_t>({2, 2}, {1, 2, 3, 4}, {2, 1}, 9).second, (std::vector<int8_t>{1, 2, 9, 9, 3, 4}));
  EXPECT_EQ(dilated<double>({1, 2}, {1, 2}, {7, 2}, 9).second, (std::vector<double>{1, 9, 2}));
}

TEST(Dilate, EmptyTensors) {
  const auto [shape, values] = dilated<float>({2, 0}, {}, {2, 3}, 1);
  EXPECT_EQ(shape, (Shape{3, 0}));
  EXPECT_TRUE(values.empty());
}

TEST(Dilate, RefusesBadDilations) {
  for (const int32_t bad : {0, -1, INT32_MIN}) {
    EXPECT_THROW(dilated<float>({2}, {1, 2}, {bad}, 0), Error) << bad;
    EXPECT_THROW(dilated<float>({2}, {1, 2}, {bad}, 0, false), Error) << bad;
  }
  EXPECT_THROW(dilated<float>({2}, {1, 2}, {1, 1}, 0), Error);
  EXPECT_THROW(dilated<float>({}, {1}, {}, 0), Error);
}

}  // namespace
}  // namespace leadline::ops
