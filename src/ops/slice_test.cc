// SPDX-License-Identifier: Apache-2.0
#include "ops/slice.h"

#include <gtest/gtest.h>

#include <numeric>

#include "ops/string_testing.h"

namespace leadline::ops {
namespace {

using Ints = std::vector<int32_t>;

Ints iota(int64_t count) {
  Ints values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

struct Result {
  Shape shape;
  Ints values;
};

Result slice(const Shape& shape, const std::vector<int64_t>& begin, const std::vector<int64_t>& size,
             bool known = true) {
  OpTester t("SLICE");
  const auto rank = static_cast<int64_t>(begin.size());
  t.input<int32_t>(shape, iota(shape.elements()), {}, false).input<int64_t>({rank}, begin, {}, known);
  t.input<int64_t>({static_cast<int64_t>(size.size())}, size).output(DType::kInt32);
  t.run();
  return {t.shape(0), t.result<int32_t>(0)};
}

TEST(Slice, TakesABox) {
  const Result r = slice({3, 4}, {1, 2}, {2, -1});
  EXPECT_EQ(r.shape, (Shape{2, 2}));
  EXPECT_EQ(r.values, (Ints{6, 7, 10, 11}));
  EXPECT_EQ(slice({2, 2, 2, 2, 2, 2}, {1, 0, 1, 0, 1, 0}, {1, 1, 1, 1, 1, 2}).values, (Ints{42, 43}));
  EXPECT_EQ(slice({3, 4}, {3, 0}, {0, 4}).shape, (Shape{0, 4}));
}

TEST(Slice, ShapeIsKnownBeforeTheBegin) {
  OpTester t("SLICE");
  t.input<int32_t>({4}, iota(4), {}, false).input<int32_t>({1}, {2}, {}, false).input<int32_t>({1}, {2});
  t.output(DType::kInt32);
  EXPECT_TRUE(t.infer(false));
  EXPECT_EQ(t.shape(0), (Shape{2}));
  t.run();
  EXPECT_EQ(t.result<int32_t>(0), (Ints{2, 3}));
  EXPECT_THROW(slice({4}, {3}, {2}, false), Error);
}

TEST(Slice, RefusesWhatLeavesTheTensor) {
  EXPECT_THROW(slice({4}, {0}, {5}), Error);
  EXPECT_THROW(slice({4}, {3}, {2}), Error);
  EXPECT_THROW(slice({4}, {-1}, {2}), Error);
  EXPECT_THROW(slice({4}, {5}, {-1}), Error);
  EXPECT_THROW(slice({4}, {0}, {-2}), Error);
  EXPECT_THROW(slice({4}, {0, 0}, {1, 1}), Error);
  EXPECT_THROW(slice({4}, {INT64_MAX}, {1}), Error);
  EXPECT_THROW(slice({4}, {1}, {INT64_MAX}), Error);
}

TEST(Slice, StringsAndInt4) {
  OpTester t("SLICE");
  string_input(t, {4}, {"a", "bb", "ccc", "dddd"}).input<int32_t>({1}, {1}).input<int32_t>({1}, {2});
  t.output(DType::kString);
  t.run();
  EXPECT_EQ(string_result(t, 0), (std::vector<std::string>{"bb", "ccc"}));
  OpTester nibbles("SLICE");
  nibbles.raw_input(DType::kInt4, {4}, {std::byte{0x21}, std::byte{0x43}});
  nibbles.input<int32_t>({1}, {1}).input<int32_t>({1}, {3}).output(DType::kInt4);
  nibbles.run();
  EXPECT_EQ(nibbles.result<uint8_t>(0), (std::vector<uint8_t>{0x32, 0x04}));
}

Result strided(const Shape& shape, const Ints& begin, const Ints& end, const Ints& strides,
               const StridedSliceAttributes& a = {}, bool begin_known = true) {
  OpTester t("STRIDED_SLICE");
  const Shape vector = {static_cast<int64_t>(begin.size())};
  t.attributes(a).input<int32_t>(shape, iota(shape.elements()), {}, false);
  t.input<int32_t>(vector, begin, {}, begin_known).input<int32_t>(vector, end).input<int32_t>(vector, strides);
  t.output(DType::kInt32);
  t.run();
  return {t.shape(0), t.result<int32_t>(0)};
}

TEST(StridedSlice, PositiveAndNegativeStrides) {
  EXPECT_EQ(strided({6}, {1}, {6}, {2}).values, (Ints{1, 3, 5}));
  EXPECT_EQ(strided({6}, {-1}, {-7}, {-2}).values, (Ints{5, 3, 1}));
  EXPECT_EQ(strided({6}, {5}, {0}, {-1}).values, (Ints{5, 4, 3, 2, 1}));
  EXPECT_EQ(strided({6}, {-100}, {100}, {1}).values, iota(6));
  EXPECT_EQ(strided({6}, {4}, {2}, {1}).shape, (Shape{0}));
  EXPECT_EQ(strided({6}, {2}, {4}, {-1}).shape, (Shape{0}));
  EXPECT_EQ(strided({2, 3}, {0}, {1}, {1}).values, (Ints{0, 1, 2}));
  EXPECT_EQ(strided({6}, {0}, {6}, {INT32_MAX}).values, (Ints{0}));
  EXPECT_EQ(strided({6}, {5}, {0}, {INT32_MIN}).values, (Ints{5}));
}

TEST(StridedSlice, BeginAndEndMasks) {
  StridedSliceAttributes a;
  a.begin_mask = 1;
  a.end_mask = 1;
  EXPECT_EQ(strided({4}, {3}, {0}, {1}, a).values, iota(4));
  EXPECT_EQ(strided({4}, {1}, {2}, {-1}, a).values, (Ints{3, 2, 1, 0}));
}

TEST(StridedSlice, ShrinksAnAxis) {
  StridedSliceAttributes a;
  a.shrink_axis_mask = 1;
  const Result r = strided({2, 3}, {-1}, {0}, {1}, a);
  EXPECT_EQ(r.shape, (Shape{3}));
  EXPECT_EQ(r.values, (Ints{3, 4, 5}));
  EXPECT_THROW(strided({2, 3}, {2}, {3}, {1}, a), Error);
  EXPECT_THROW(strided({2, 3}, {-4}, {3}, {-1}, a), Error);
}

TEST(StridedSlice, EllipsisAndNewAxis) {
  StridedSliceAttributes a;  // x[..., newaxis, 1]
  a.ellipsis_mask = 1;
  a.new_axis_mask = 2;
  a.shrink_axis_mask = 4;
  const Result r = strided({2, 2, 2}, {0, 0, 1}, {0, 0, 2}, {1, 1, 1}, a);
  EXPECT_EQ(r.shape, (Shape{2, 2, 1}));
  EXPECT_EQ(r.values, (Ints{1, 3, 5, 7}));
  StridedSliceAttributes front;  // x[newaxis, ..., ::-1]
  front.new_axis_mask = 1;
  front.ellipsis_mask = 2;
  front.begin_mask = 4;
  front.end_mask = 4;
  const Result f = strided({2, 3}, {0, 0, 0}, {0, 0, 0}, {1, 1, -1}, front);
  EXPECT_EQ(f.shape, (Shape{1, 2, 3}));
  EXPECT_EQ(f.values, (Ints{2, 1, 0, 5, 4, 3}));
  a.ellipsis_mask = 3;
  EXPECT_THROW(strided({2, 2, 2}, {0, 0, 1}, {0, 0, 2}, {1, 1, 1}, a), Error);
}

TEST(StridedSlice, OffsetCountsFromTheBegin) {
  StridedSliceAttributes a;
  a.offset = true;
  EXPECT_EQ(strided({6}, {2}, {3}, {1}, a).values, (Ints{2, 3, 4}));
  EXPECT_EQ(strided({6}, {2}, {3}, {1}, a, false).values, (Ints{2, 3, 4}));
  EXPECT_EQ(strided({6}, {4}, {-3}, {-1}, a, false).values, (Ints{4, 3, 2}));
  EXPECT_THROW(strided({6}, {4}, {3}, {1}, a, false), Error);
}

TEST(StridedSlice, SixAxes) {
  const Result r = strided({2, 2, 2, 2, 2, 2}, {1, 1, 1, 1, 1, 0}, {2, 2, 2, 2, 2, 2}, {1, 1, 1, 1, 1, 1});
  EXPECT_EQ(r.values, (Ints{62, 63}));
}

TEST(StridedSlice, RefusesZeroStridesAndTooManyIndices) {
  EXPECT_THROW(strided({6}, {0}, {6}, {0}), Error);
  EXPECT_THROW(strided({6}, {0, 0}, {6, 6}, {1, 1}), Error);
}

TEST(StridedSlice, Strings) {
  OpTester t("STRIDED_SLICE");
  string_input(t, {3}, {"a", "bb", "ccc"}).input<int32_t>({1}, {2}).input<int32_t>({1}, {-4}).input<int32_t>({1}, {-2});
  t.output(DType::kString);
  t.run();
  EXPECT_EQ(string_result(t, 0), (std::vector<std::string>{"ccc", "a"}));
}

}  // namespace
}  // namespace leadline::ops
