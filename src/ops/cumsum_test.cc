// SPDX-License-Identifier: Apache-2.0
#include "ops/cumsum.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

using Ints = std::vector<int32_t>;

Ints cumsum(int32_t axis, bool exclusive, bool reverse) {
  CumsumAttributes a;
  a.exclusive = exclusive;
  a.reverse = reverse;
  OpTester t("CUMSUM");
  t.attributes(a).input<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6}).input<int32_t>({}, {axis}).output(DType::kInt32);
  t.run();
  return t.result<int32_t>(0);
}

TEST(Cumsum, EveryDirection) {
  EXPECT_EQ(cumsum(1, false, false), (Ints{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(cumsum(-1, true, false), (Ints{0, 1, 3, 0, 4, 9}));
  EXPECT_EQ(cumsum(1, false, true), (Ints{6, 5, 3, 15, 11, 6}));
  EXPECT_EQ(cumsum(1, true, true), (Ints{5, 3, 0, 11, 6, 0}));
  EXPECT_EQ(cumsum(0, false, false), (Ints{1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(cumsum(-2, true, true), (Ints{4, 5, 6, 0, 0, 0}));
  EXPECT_THROW(cumsum(2, false, false), Error);
}

TEST(Cumsum, IntegersWrap) {
  OpTester t("CUMSUM");
  t.input<int64_t>({2}, {INT64_MAX, 1}).input<int32_t>({}, {0}).output(DType::kInt64);
  t.run();
  EXPECT_EQ(t.result<int64_t>(0), (std::vector<int64_t>{INT64_MAX, INT64_MIN}));
}

}  // namespace
}  // namespace leadline::ops
