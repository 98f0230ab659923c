// SPDX-License-Identifier: Apache-2.0
#include "ops/bucketize.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

template <typename T>
std::vector<int32_t> buckets(std::vector<float> boundaries, const std::vector<T>& values) {
  BucketizeAttributes a;
  a.boundaries = std::move(boundaries);
  OpTester t("BUCKETIZE");
  t.attributes(a).input<T>({static_cast<int64_t>(values.size())}, values).output(DType::kInt32);
  t.run();
  return t.result<int32_t>(0);
}

using Ints = std::vector<int32_t>;

TEST(Bucketize, CountsBoundariesNotAbove) {
  EXPECT_EQ(buckets<float>({0, 10, 100}, {-5, 0, 9.5, 10, 100, 1000}), (Ints{0, 1, 1, 2, 3, 3}));
  EXPECT_EQ(buckets<int64_t>({0, 10, 100}, {-5, 0, 9, 100}), (Ints{0, 1, 1, 3}));
  EXPECT_EQ(buckets<float>({}, {1}), (Ints{0}));
}

TEST(Bucketize, ComparesInTheWiderOfTheTwoTypes) {
  EXPECT_EQ(buckets<int32_t>({16777218}, {16777217, 16777219}), (Ints{0, 1}));
  EXPECT_EQ(buckets<double>({0.1F}, {0.1, static_cast<double>(0.1F)}), (Ints{0, 1}));
}

TEST(Bucketize, NanIsAboveAll) { EXPECT_EQ(buckets<float>({0, 1}, {std::nanf("")}), (Ints{2})); }

TEST(Bucketize, RefusesUnsortedBoundariesAndOtherTypes) {
  EXPECT_THROW(buckets<float>({1, 0}, {1}), Error);
  EXPECT_THROW(buckets<int8_t>({0, 1}, {1}), Error);
}

}  // namespace
}  // namespace leadline::ops
