// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

TEST(TopK, LargestFirstAndOfEqualOnesTheFirst) {
  OpTester t("TOPK_V2");
  t.input<int8_t>({2, 4}, {1, 3, 3, 2, -5, -5, -6, -5}).input<int32_t>({}, {3}).output(DType::kInt8);
  t.output(DType::kInt32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 3}));
  EXPECT_EQ(t.result<int8_t>(0), (std::vector<int8_t>{3, 3, 2, -5, -5, -5}));
  EXPECT_EQ(t.result<int32_t>(1), (std::vector<int32_t>{1, 2, 3, 0, 1, 3}));
}

TEST(TopK, NanIsTheSmallest) {
  OpTester t("TOPK_V2");
  t.input<float>({4}, {NAN, -INFINITY, NAN, 2}).input<int16_t>({1}, {4}).output(DType::kFloat32).output(DType::kInt16);
  t.run();
  EXPECT_EQ(t.result<int16_t>(1), (std::vector<int16_t>{3, 1, 0, 2}));
}

TEST(TopK, AgreesWithSorting) {
  std::mt19937 random(3);
  std::vector<int32_t> values(1000);
  for (int32_t& value : values) value = static_cast<int32_t>(random() % 100);
  std::vector<int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return values[static_cast<size_t>(a)] > values[static_cast<size_t>(b)];
  });
  for (const int32_t k : {1, 10, 999, 1000}) {
    OpTester t("TOPK_V2");
    t.input<int32_t>({1000}, values).input<int32_t>({}, {k}, {}, false).output(DType::kInt32).output(DType::kInt32);
    t.run();
    EXPECT_EQ(t.result<int32_t>(1), std::vector<int32_t>(order.begin(), order.begin() + k));
  }
}

TEST(TopK, NothingForZeroAndNegativeK) {
  for (const int32_t k : {0, -3}) {
    OpTester t("TOPK_V2");
    t.input<float>({2, 2}, {1, 2, 3, 4}).input<int32_t>({}, {k}).output(DType::kFloat32).output(DType::kInt32);
    t.run();
    EXPECT_EQ(t.shape(0), (Shape{2, 0}));
  }
}

TEST(TopK, RefusesALargeKAndRowsBeyondTheIndexType) {
  OpTester t("TOPK_V2");
  t.input<float>({2}, {1, 2}).input<int32_t>({}, {3}).output(DType::kFloat32).output(DType::kInt32);
  EXPECT_THROW(t.run(), Error);
  OpTester narrow("TOPK_V2");
  narrow.input<int8_t>({40000}, std::vector<int8_t>(40000)).input<int32_t>({}, {1}).output(DType::kInt8);
  narrow.output(DType::kInt16);
  EXPECT_THROW(narrow.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
