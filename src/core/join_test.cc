// SPDX-License-Identifier: Apache-2.0
#include "core/join.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace leadline {
namespace {

TEST(Join, PutsSeparatorsBetweenItems) {
  EXPECT_EQ(join(std::vector<std::string>{"a", "b", "c"}, ", "), "a, b, c");
  EXPECT_EQ(join(std::array<std::string_view, 2>{"x", "y"}, " or "), "x or y");
  EXPECT_EQ(join(std::vector<int32_t>{-1, 20}, ","), "-1,20");
  EXPECT_EQ(join(std::vector<int64_t>{std::numeric_limits<int64_t>::min(), 0}, " "), "-9223372036854775808 0");
}

TEST(Join, LeavesEmptyAndSingleListsWithoutSeparators) {
  EXPECT_EQ(join(std::vector<std::string>{}, ", "), "");
  EXPECT_EQ(join(std::vector<std::string>{"alone"}, ", "), "alone");
  EXPECT_EQ(join(std::vector<std::string>{"", ""}, "/"), "/");
}

}  // namespace
}  // namespace leadline
