// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

using Ints = std::vector<int32_t>;

template <typename Index>
Ints updated(const Shape& shape, const Ints& operand, const Shape& update_shape, const Ints& update,
             const std::vector<Index>& start) {
  OpTester t("DYNAMIC_UPDATE_SLICE");
  t.input<int32_t>(shape, operand).input<int32_t>(update_shape, update);
  t.input<Index>({static_cast<int64_t>(start.size())}, start, {}, false).output(DType::kInt32);
  EXPECT_TRUE(t.infer(false));
  t.run();
  EXPECT_EQ(t.shape(0), shape);
  return t.result<int32_t>(0);
}

TEST(DynamicUpdateSlice, ReplacesABlock) {
  EXPECT_EQ(updated<int32_t>({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {2, 1}, {-1, -2}, {1, 1}),
            (Ints{1, 2, 3, 4, -1, 6, 7, -2, 9}));
  EXPECT_EQ(updated<int64_t>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 1}, {-1, -2}, {1, 0, 1}),
            (Ints{1, 2, 3, 4, 5, -1, 7, -2}));
}

TEST(DynamicUpdateSlice, StartsAreMovedInside) {
  EXPECT_EQ(updated<int32_t>({4}, {1, 2, 3, 4}, {2}, {-1, -2}, {3}), (Ints{1, 2, -1, -2}));
  EXPECT_EQ(updated<int32_t>({4}, {1, 2, 3, 4}, {2}, {-1, -2}, {INT32_MIN}), (Ints{-1, -2, 3, 4}));
  EXPECT_EQ(updated<int64_t>({4}, {1, 2, 3, 4}, {2}, {-1, -2}, {INT64_MAX}), (Ints{1, 2, -1, -2}));
}

TEST(DynamicUpdateSlice, WholeEmptyAndScalarUpdates) {
  EXPECT_EQ(updated<int32_t>({2}, {1, 2}, {2}, {-1, -2}, {9}), (Ints{-1, -2}));
  EXPECT_EQ(updated<int32_t>({2}, {1, 2}, {0}, {}, {1}), (Ints{1, 2}));
  EXPECT_EQ(updated<int32_t>({2, 0}, {}, {1, 0}, {}, {1, 1}), (Ints{}));
  EXPECT_EQ(updated<int32_t>({}, {1}, {}, {2}, {}), (Ints{2}));
}

TEST(DynamicUpdateSlice, Int4) {
  OpTester t("DYNAMIC_UPDATE_SLICE");
  t.raw_input(DType::kInt4, {3, 3},
              {std::byte{0x21}, std::byte{0x43}, std::byte{0x65}, std::byte{0x07}, std::byte{0x01}});
  t.raw_input(DType::kInt4, {2, 1}, {std::byte{0xFE}}).input<int32_t>({2}, {1, 1}).output(DType::kInt4);
  t.run();
  // Elements 1 2 3 4 5 6 7 0 1; numbers 4 and 7 become 0xE and 0xF.
  EXPECT_EQ(t.result<uint8_t>(0), (std::vector<uint8_t>{0x21, 0x43, 0x6E, 0xF7, 0x01}));
}

TEST(DynamicUpdateSlice, RefusesShapesThatDoNotFit) {
  EXPECT_THROW(updated<int32_t>({2}, {1, 2}, {3}, {1, 2, 3}, {0}), Error);
  EXPECT_THROW(updated<int32_t>({2}, {1, 2}, {1, 1}, {1}, {0}), Error);
  EXPECT_THROW(updated<int32_t>({2}, {1, 2}, {1}, {1}, {0, 0}), Error);
  OpTester types("DYNAMIC_UPDATE_SLICE");
  types.input<int32_t>({1}, {1}).input<float>({1}, {1}).input<int32_t>({1}, {0}).output(DType::kInt32);
  EXPECT_THROW(types.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
