// SPDX-License-Identifier: Apache-2.0
#include "ops/arg_min_max.h"

#include <gtest/gtest.h>

#include <limits>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

ArgMinMaxAttributes to(DType type) {
  ArgMinMaxAttributes a;
  a.output_type = type;
  return a;
}

TEST(ArgMinMax, FirstOfEqualValuesWinsAlongEveryAxis) {
  const std::vector<int8_t> data = {3, 7, 7, 9, 9, 1};
  OpTester rows("ARG_MAX");
  rows.attributes(to(DType::kInt32)).input<int8_t>({2, 3}, data).input<int32_t>({}, {-1}).output(DType::kInt32).run();
  EXPECT_EQ(rows.result<int32_t>(0), (std::vector<int32_t>{1, 0}));
  OpTester columns("ARG_MIN");
  columns.attributes(to(DType::kInt64)).input<int8_t>({2, 3}, data).input<int64_t>({1}, {0}, {}, false);
  columns.output(DType::kInt64).run();
  EXPECT_EQ(columns.result<int64_t>(0), (std::vector<int64_t>{0, 0, 1}));
}

TEST(ArgMinMax, MiddleAxisWithMoreOutputsThanABlock) {
  std::vector<float> data(3 * 130);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>((i * 31) % 97);
  OpTester t("ARG_MAX");
  t.attributes(to(DType::kInt32)).input<float>({1, 3, 130}, data).input<int32_t>({}, {1});
  t.output(DType::kInt32).threads(2).run();
  for (size_t k = 0; k < 130; ++k) {
    int32_t best = 0;
    for (int32_t i = 1; i < 3; ++i) {
      if (data[static_cast<size_t>(i) * 130 + k] > data[static_cast<size_t>(best) * 130 + k]) best = i;
    }
    EXPECT_EQ(t.result<int32_t>(0)[k], best);
  }
}

TEST(ArgMinMax, NanLosesAgainstNumbers) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  OpTester t("ARG_MIN");
  t.attributes(to(DType::kInt32)).input<float>({2, 3}, {nan, 2, 1, nan, nan, nan}).input<int32_t>({}, {1});
  t.output(DType::kInt32).run();
  EXPECT_EQ(t.result<int32_t>(0), (std::vector<int32_t>{2, 0}));
}

TEST(ArgMinMax, BooleansCompare) {
  OpTester t("ARG_MAX");
  t.attributes(to(DType::kInt32)).input<bool>({4}, {false, true, true, false}).input<int32_t>({}, {0});
  t.output(DType::kInt32).run();
  EXPECT_EQ(t.shape(0), Shape{});
  EXPECT_EQ(t.result<int32_t>(0), (std::vector<int32_t>{1}));
}

TEST(ArgMinMax, EmptyAxisAndWrongTypesAreRefused) {
  OpTester empty("ARG_MAX");
  empty.attributes(to(DType::kInt32)).input<float>({2, 0}, {}).input<int32_t>({}, {1}).output(DType::kInt32);
  EXPECT_THROW(empty.run(), Error);
  OpTester type("ARG_MAX");
  type.attributes(to(DType::kInt64)).input<float>({2}, {1, 2}).input<int32_t>({}, {0}).output(DType::kInt32);
  EXPECT_THROW(type.run(), Error);
  OpTester outer("ARG_MAX");
  outer.attributes(to(DType::kInt32)).input<float>({0, 2}, {}).input<int32_t>({}, {1}).output(DType::kInt32).run();
  EXPECT_EQ(outer.shape(0), (Shape{0}));
}

}  // namespace
}  // namespace leadline::ops
