// SPDX-License-Identifier: Apache-2.0
#include "ops/stablehlo_pad.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

template <typename T>
OpTester pad(const Shape& shape, const std::vector<T>& data, T value, std::vector<int64_t> low,
             std::vector<int64_t> high, std::vector<int64_t> interior) {
  OpTester t("STABLEHLO_PAD");
  StablehloPadAttributes a;
  a.edge_low = std::move(low);
  a.edge_high = std::move(high);
  a.interior = std::move(interior);
  t.attributes(std::move(a)).input<T>(shape, data).template input<T>({}, {value}).output(dtype_of<T>());
  return t;
}

TEST(StablehloPad, PadsEdgesAndBetweenElements) {
  auto t = pad<int32_t>({2, 2}, {1, 2, 3, 4}, 7, {1, 0}, {0, 1}, {0, 1});
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{3, 4}));
  EXPECT_EQ(t.result<int32_t>(0), (std::vector<int32_t>{7, 7, 7, 7, 1, 7, 2, 7, 3, 7, 4, 7}));
}

TEST(StablehloPad, NegativeEdgesCropGapsToo) {
  // 1 0 0 2 0 0 3 without its first and its last two.
  auto t = pad<float>({3}, {1, 2, 3}, 0, {-1}, {-2}, {2});
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{0, 0, 2, 0}));
  auto whole_gap = pad<float>({3}, {1, 2, 3}, 0, {-3}, {-3}, {2});
  whole_gap.run();
  EXPECT_EQ(whole_gap.result<float>(0), (std::vector<float>{2}));
}

TEST(StablehloPad, CropsMayReachThroughTheInput) {
  auto t = pad<int8_t>({2}, {1, 2}, 9, {5}, {-4}, {0});
  t.run();
  EXPECT_EQ(t.result<int8_t>(0), (std::vector<int8_t>{9, 9, 9}));
}

TEST(StablehloPad, AnAxisThatVanishesTakesTheOthersWithIt) {
  auto t = pad<int64_t>({2, 3}, {1, 2, 3, 4, 5, 6}, 0, {-1, 0}, {-1, 0}, {0, 0});
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{0, 0}));
}

TEST(StablehloPad, EmptyInputsBecomePadding) {
  auto t = pad<uint16_t>({0}, {}, 3, {1}, {1}, {5});
  t.run();
  EXPECT_EQ(t.result<uint16_t>(0), (std::vector<uint16_t>{3, 3}));
}

TEST(StablehloPad, RefusesBadPaddings) {
  EXPECT_THROW(pad<float>({1}, {1}, 0, {0}, {0}, {-1}).run(), Error);
  EXPECT_THROW(pad<float>({1}, {1}, 0, {0, 0}, {0}, {0}).run(), Error);
  EXPECT_THROW(pad<float>({1}, {1}, 0, {INT64_MAX}, {INT64_MAX}, {0}).run(), Error);
  EXPECT_THROW(pad<float>({1}, {1}, 0, {INT64_MIN}, {INT64_MIN}, {0}).run(), Error);
  EXPECT_THROW(pad<float>({3}, {1, 2, 3}, 0, {0}, {0}, {INT64_MAX}).run(), Error);
  EXPECT_THROW(pad<float>({1, 1, 1}, {1}, 0, {INT32_MAX - 1, INT32_MAX - 1, INT32_MAX - 1}, {0, 0, 0}, {0, 0, 0}).run(),
               Error);
  OpTester value("STABLEHLO_PAD");
  StablehloPadAttributes a;
  a.edge_low = a.edge_high = a.interior = {0};
  value.attributes(a).input<float>({1}, {1}).input<float>({2}, {1, 2}).output(DType::kFloat32);
  EXPECT_THROW(value.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
