// SPDX-License-Identifier: Apache-2.0
#include "io/json_depth.h"

#include <gtest/gtest.h>

#include <string>

namespace leadline {
namespace {

TEST(JsonDepth, CountsWhatIsOpen) {
  EXPECT_EQ(json_depth(""), 0U);
  EXPECT_EQ(json_depth("7"), 0U);
  EXPECT_EQ(json_depth("[1, [2], {\"a\": [3]}]"), 3U);
  EXPECT_EQ(json_depth("[] [] {}"), 1U);
  EXPECT_EQ(json_depth("]]]["), 1U);
  EXPECT_EQ(json_depth(std::string(1000, '[')), 1000U);
}

TEST(JsonDepth, LeavesStringsOut) {
  EXPECT_EQ(json_depth(R"(["[[[", "\"[[[", "\\", ["x"]])"), 2U);
  EXPECT_EQ(json_depth(R"("[[[)"), 0U);
  EXPECT_EQ(json_depth("\"\\"), 0U);
}

}  // namespace
}  // namespace leadline
