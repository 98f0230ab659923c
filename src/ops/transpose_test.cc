// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>

#include "ops/string_testing.h"

namespace leadline::ops {
namespace {

template <typename T>
std::vector<T> iota(int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), T{});
  return values;
}

TEST(Transpose, ThreeAxes) {
  OpTester t("TRANSPOSE");
  t.input<float>({2, 3, 4}, iota<float>(24)).input<int32_t>({3}, {2, 0, -2}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{4, 2, 3}));
  EXPECT_EQ(t.result<float>(0),
            (std::vector<float>{0, 4, 8, 12, 16, 20, 1, 5, 9, 13, 17, 21, 2, 6, 10, 14, 18, 22, 3, 7, 11, 15, 19, 23}));
}

TEST(Transpose, EightAxesAndBack) {
  const Shape shape = {2, 3, 1, 2, 3, 2, 1, 2};
  OpTester there("TRANSPOSE");
  there.input<int16_t>(shape, iota<int16_t>(144)).input<int32_t>({8}, {7, 5, 3, 1, 0, 2, 4, 6}).output(DType::kInt16);
  there.run();
  OpTester back("TRANSPOSE");
  back.input<int16_t>(there.shape(0), there.result<int16_t>(0));
  back.input<int32_t>({8}, {4, 3, 5, 2, 6, 1, 7, 0}).output(DType::kInt16);
  back.run();
  EXPECT_EQ(back.shape(0), shape);
  EXPECT_EQ(back.result<int16_t>(0), iota<int16_t>(144));
}

TEST(Transpose, OddNumberOfInt4) {
  OpTester t("TRANSPOSE");  // [[1, 2, 3]] and [[4, 5, 6]], ... as nibbles, low first
  t.raw_input(DType::kInt4, {3, 3},
              {std::byte{0x21}, std::byte{0x43}, std::byte{0x65}, std::byte{0x87}, std::byte{0xF9}});
  t.input<int32_t>({2}, {1, 0}).output(DType::kInt4);
  t.run();
  EXPECT_EQ(t.result<uint8_t>(0), (std::vector<uint8_t>{0x41, 0x27, 0x85, 0x63, 0x09}));
}

TEST(Transpose, Strings) {
  OpTester t("TRANSPOSE");
  string_input(t, {2, 2}, {"a", "bb", "ccc", ""}).input<int32_t>({2}, {1, 0}).output(DType::kString);
  t.run();
  EXPECT_EQ(string_result(t, 0), (std::vector<std::string>{"a", "ccc", "bb", ""}));
}

TEST(Transpose, EmptyAndScalar) {
  OpTester t("TRANSPOSE");
  t.input<float>({0, 3}, {}).input<int32_t>({2}, {1, 0}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{3, 0}));
  OpTester s("TRANSPOSE");
  s.input<float>({}, {3}).input<int32_t>({0}, {}).output(DType::kFloat32);
  s.run();
  EXPECT_EQ(s.result<float>(0), (std::vector<float>{3}));
}

TEST(Transpose, RefusesWhatIsNoPermutation) {
  for (const std::vector<int32_t>& order : {std::vector<int32_t>{0, 0}, {0, 2}, {-3, 0}, {0}, {0, 1, 2}}) {
    OpTester t("TRANSPOSE");
    t.input<float>({2, 2}, {1, 2, 3, 4}).input<int32_t>({static_cast<int64_t>(order.size())}, order);
    t.output(DType::kFloat32);
    EXPECT_THROW(t.run(), Error);
  }
}

}  // namespace
}  // namespace leadline::ops
