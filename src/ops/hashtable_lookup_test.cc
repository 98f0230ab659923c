// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/string_testing.h"

namespace leadline::ops {
namespace {

TEST(HashtableLookup, GivesRowsAndHits) {
  OpTester t("HASHTABLE_LOOKUP");
  t.input<int32_t>({3}, {7, -1, -5}).input<int32_t>({2}, {-5, 7}).input<int16_t>({2, 2}, {1, 2, 3, 4});
  t.output(DType::kInt16).output(DType::kUInt8);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{3, 2}));
  EXPECT_EQ(t.result<int16_t>(0), (std::vector<int16_t>{3, 4, 0, 0, 1, 2}));
  EXPECT_EQ(t.result<uint8_t>(1), (std::vector<uint8_t>{1, 0, 1}));
}

TEST(HashtableLookup, GivesStrings) {
  OpTester t("HASHTABLE_LOOKUP");
  t.input<int32_t>({3}, {7, -1, -5}, {}, false).input<int32_t>({2}, {-5, 7});
  string_input(t, {2}, {"five", "seven"}).output(DType::kString).output(DType::kUInt8);
  t.run();
  EXPECT_EQ(string_result(t, 0), (std::vector<std::string>{"seven", "", "five"}));
  EXPECT_EQ(t.result<uint8_t>(1), (std::vector<uint8_t>{1, 0, 1}));
}

TEST(HashtableLookup, RefusesOtherNumbersOfKeysAndValues) {
  OpTester t("HASHTABLE_LOOKUP");
  t.input<int32_t>({1}, {7}).input<int32_t>({2}, {-5, 7}).input<float>({3}, {1, 2, 3});
  t.output(DType::kFloat32).output(DType::kUInt8);
  EXPECT_THROW(t.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
