// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

using Ints = std::vector<int32_t>;

Ints reversed(const Shape& shape, const Ints& data, const Ints& axes, bool known) {
  OpTester t("REVERSE_V2");
  t.input<int32_t>(shape, data).input<int32_t>({static_cast<int64_t>(axes.size())}, axes, {}, known);
  t.output(DType::kInt32);
  EXPECT_TRUE(t.infer(false));
  t.run();
  return t.result<int32_t>(0);
}

TEST(Reverse, AnyAxes) {
  for (const bool known : {true, false}) {
    EXPECT_EQ(reversed({2, 3}, {1, 2, 3, 4, 5, 6}, {1}, known), (Ints{3, 2, 1, 6, 5, 4}));
    EXPECT_EQ(reversed({2, 3}, {1, 2, 3, 4, 5, 6}, {0, -1}, known), (Ints{6, 5, 4, 3, 2, 1}));
    EXPECT_EQ(reversed({2, 0}, {}, {0}, known), (Ints{}));
    EXPECT_EQ(reversed({2}, {1, 2}, {}, known), (Ints{1, 2}));
    EXPECT_THROW(reversed({2}, {1, 2}, {1}, known), Error);
  }
}

}  // namespace
}  // namespace leadline::ops
