// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

using Ints = std::vector<int32_t>;
using Floats = std::vector<float>;

template <typename T>
std::vector<T> unsorted(const std::string& op, const Shape& shape, const std::vector<T>& data, const Shape& id_shape,
                        const Ints& ids, int32_t segments, bool known = true) {
  OpTester t(op);
  t.input<T>(shape, data);
  t.input<int32_t>(id_shape, ids, {}, false).input<int32_t>({}, {segments}, {}, known);
  t.output(dtype_of<T>());
  EXPECT_EQ(t.infer(false), known);
  t.run();
  EXPECT_EQ(t.shape(0)[0], segments);
  return t.result<T>(0);
}

Ints sorted(const Shape& shape, const Ints& data, const Ints& ids, bool known = true) {
  OpTester t("SEGMENT_SUM");
  t.input<int32_t>(shape, data).input<int32_t>({static_cast<int64_t>(ids.size())}, ids, {}, known);
  t.output(DType::kInt32);
  EXPECT_EQ(t.infer(false), known);
  t.run();
  return t.result<int32_t>(0);
}

TEST(SegmentSum, AddsNeighbouringRows) {
  EXPECT_EQ(sorted({3, 2}, {1, 2, 3, 4, 5, 6}, {0, 0, 1}), (Ints{4, 6, 5, 6}));
  EXPECT_EQ(sorted({3}, {1, 2, INT32_MAX}, {0, 1, 1}, false), (Ints{1, INT32_MIN + 1}));
  EXPECT_EQ(sorted({0, 2}, {}, {}), (Ints{}));
}

TEST(SegmentSum, IdsMustBeginAtZeroAndLeaveNoGap) {
  for (const Ints& ids : {Ints{1, 1}, {0, 2}, {0, -1}, {-1, 0}, {0, INT32_MIN}}) {
    EXPECT_THROW(sorted({2}, {1, 2}, ids), Error);
    EXPECT_THROW(sorted({2}, {1, 2}, ids, false), Error);
  }
  EXPECT_THROW(sorted({2}, {1, 2}, {0}), Error);
}

TEST(UnsortedSegment, EveryReduction) {
  const Ints data = {1, 2, 3, 4, 5, 6, 7, 8};
  const Ints ids = {2, 0, 2, 0};
  EXPECT_EQ(unsorted<int32_t>("UNSORTED_SEGMENT_SUM", {4, 2}, data, {4}, ids, 3), (Ints{10, 12, 0, 0, 6, 8}));
  EXPECT_EQ(unsorted<int32_t>("UNSORTED_SEGMENT_PROD", {4, 2}, data, {4}, ids, 3), (Ints{21, 32, 1, 1, 5, 12}));
  EXPECT_EQ(unsorted<int32_t>("UNSORTED_SEGMENT_MAX", {4, 2}, data, {4}, ids, 3),
            (Ints{7, 8, INT32_MIN, INT32_MIN, 5, 6}));
  EXPECT_EQ(unsorted<int32_t>("UNSORTED_SEGMENT_MIN", {4, 2}, data, {4}, ids, 3, false),
            (Ints{3, 4, INT32_MAX, INT32_MAX, 1, 2}));
}

TEST(UnsortedSegment, EmptySegmentsOfFloatsAreTheLargestFiniteNumbers) {
  constexpr float kMax = std::numeric_limits<float>::max();
  EXPECT_EQ(unsorted<float>("UNSORTED_SEGMENT_MAX", {1}, {3}, {1}, {0}, 2), (Floats{3, -kMax}));
  EXPECT_EQ(unsorted<float>("UNSORTED_SEGMENT_MIN", {0}, {}, {0}, {}, 2), (Floats{kMax, kMax}));
  EXPECT_EQ(unsorted<float>("UNSORTED_SEGMENT_MIN", {2}, {NAN, 3}, {2}, {0, 0}, 1), (Floats{3}));
}

TEST(UnsortedSegment, NegativeIdsAreLeftOut) {
  EXPECT_EQ(unsorted<int32_t>("UNSORTED_SEGMENT_SUM", {3}, {1, 2, 4}, {3}, {-1, 1, INT32_MIN}, 2), (Ints{0, 2}));
}

TEST(UnsortedSegment, IdsOfAnyRank) {
  EXPECT_EQ(unsorted<int32_t>("UNSORTED_SEGMENT_SUM", {2, 2}, {1, 2, 3, 4}, {2, 2}, {1, 0, 1, 0}, 2), (Ints{6, 4}));
  EXPECT_EQ(unsorted<int32_t>("UNSORTED_SEGMENT_SUM", {2}, {1, 2}, {}, {1}, 2), (Ints{0, 0, 1, 2}));
}

TEST(UnsortedSegment, ProductsWrap) {
  EXPECT_EQ(unsorted<int32_t>("UNSORTED_SEGMENT_PROD", {2}, {65536, 65537}, {2}, {0, 0}, 1), (Ints{65536}));
}

TEST(UnsortedSegment, RefusesBadIdsAndCounts) {
  for (const int32_t segments : {0, 1, -1}) {
    EXPECT_THROW(unsorted<int32_t>("UNSORTED_SEGMENT_MAX", {2}, {1, 2}, {2}, {0, 1}, segments), Error) << segments;
  }
  EXPECT_THROW(unsorted<int32_t>("UNSORTED_SEGMENT_MAX", {2}, {1, 2}, {3}, {0, 1, 0}, 2), Error);
}

}  // namespace
}  // namespace leadline::ops
