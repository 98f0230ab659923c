// SPDX-License-Identifier: Apache-2.0
#include "ops/reverse_sequence.h"

#include <gtest/gtest.h>

#include <numeric>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

using Ints = std::vector<int32_t>;

Ints reversed(const Shape& shape, int32_t seq_dim, int32_t batch_dim, const Ints& lengths) {
  ReverseSequenceAttributes a;
  a.seq_dim = seq_dim;
  a.batch_dim = batch_dim;
  Ints values(static_cast<size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), 0);
  OpTester t("REVERSE_SEQUENCE");
  t.attributes(a).input<int32_t>(shape, values);
  t.input<int32_t>({static_cast<int64_t>(lengths.size())}, lengths, {}, false).output(DType::kInt32).threads(2);
  t.run();
  EXPECT_EQ(t.shape(0), shape);
  return t.result<int32_t>(0);
}

TEST(ReverseSequence, BatchBeforeSequence) {
  EXPECT_EQ(reversed({2, 3}, 1, 0, {2, 3}), (Ints{1, 0, 2, 5, 4, 3}));
  EXPECT_EQ(reversed({2, 1, 3, 2}, 2, 0, {3, 1}), (Ints{4, 5, 2, 3, 0, 1, 6, 7, 8, 9, 10, 11}));
}

TEST(ReverseSequence, SequenceBeforeBatch) {
  EXPECT_EQ(reversed({3, 2}, 0, 1, {3, 2}), (Ints{4, 3, 2, 1, 0, 5}));
  EXPECT_EQ(reversed({2, 2, 2, 1}, 1, 2, {2, 0}), (Ints{2, 1, 0, 3, 6, 5, 4, 7}));
}

TEST(ReverseSequence, LengthsOfNothing) {
  EXPECT_EQ(reversed({1, 3}, 1, 0, {0}), (Ints{0, 1, 2}));
  EXPECT_EQ(reversed({1, 3}, 1, 0, {-5}), (Ints{0, 1, 2}));
  EXPECT_EQ(reversed({0, 3}, 1, 0, {}), (Ints{}));
}

TEST(ReverseSequence, Int64LengthsAndSmallElements) {
  ReverseSequenceAttributes a;
  a.seq_dim = 1;
  OpTester t("REVERSE_SEQUENCE");
  t.attributes(a).input<uint8_t>({1, 4}, {1, 2, 3, 4}).input<int64_t>({1}, {3}).output(DType::kUInt8);
  t.run();
  EXPECT_EQ(t.result<uint8_t>(0), (std::vector<uint8_t>{3, 2, 1, 4}));
}

TEST(ReverseSequence, RefusesBadAxesAndLengths) {
  EXPECT_THROW(reversed({2, 3}, 1, 1, {2, 3, 1}), Error);
  EXPECT_THROW(reversed({2, 3}, 2, 0, {2, 3}), Error);
  EXPECT_THROW(reversed({2, 3}, -1, 0, {2, 3}), Error);
  EXPECT_THROW(reversed({2, 3}, 1, 0, {2}), Error);
  EXPECT_THROW(reversed({2, 3}, 1, 0, {2, 4}), Error);
}

}  // namespace
}  // namespace leadline::ops
