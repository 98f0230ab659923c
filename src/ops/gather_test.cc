// SPDX-License-Identifier: Apache-2.0
#include "ops/gather.h"

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

GatherAttributes gathering(int32_t axis, int32_t batch_dims = 0) {
  GatherAttributes a;
  a.axis = axis;
  a.batch_dims = batch_dims;
  return a;
}

TEST(Gather, RowsAndColumns) {
  OpTester rows("GATHER");
  rows.attributes(gathering(0)).input<int32_t>({3, 2}, iota(6)).input<int32_t>({2}, {2, 0}).output(DType::kInt32);
  rows.run();
  EXPECT_EQ(rows.result<int32_t>(0), (Ints{4, 5, 0, 1}));
  OpTester columns("GATHER");
  columns.attributes(gathering(-1)).input<int32_t>({2, 3}, iota(6)).input<int64_t>({1, 2}, {2, 2});
  columns.output(DType::kInt32);
  columns.run();
  EXPECT_EQ(columns.shape(0), (Shape{2, 1, 2}));
  EXPECT_EQ(columns.result<int32_t>(0), (Ints{2, 2, 5, 5}));
}

TEST(Gather, AScalarIndexDropsTheAxis) {
  OpTester t("GATHER");
  t.attributes(gathering(0)).input<int32_t>({3, 2}, iota(6)).input<int16_t>({}, {1}).output(DType::kInt32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2}));
  EXPECT_EQ(t.result<int32_t>(0), (Ints{2, 3}));
}

TEST(Gather, BatchDimensions) {
  OpTester t("GATHER");
  t.attributes(gathering(2, -1)).input<int32_t>({2, 2, 3}, iota(12)).input<int32_t>({2, 2}, {0, 2, 1, 1});
  t.output(DType::kInt32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 2, 2}));
  EXPECT_EQ(t.result<int32_t>(0), (Ints{0, 2, 3, 5, 7, 7, 10, 10}));
}

TEST(Gather, IndicesOutsideAreRefusedBeforeAnythingIsRead) {
  for (const int32_t bad : {-1, 3, INT32_MAX, INT32_MIN}) {
    OpTester t("GATHER");
    t.attributes(gathering(0)).input<int32_t>({3}, iota(3)).input<int32_t>({2}, {0, bad}, {}, false);
    t.output(DType::kInt32);
    EXPECT_THROW(t.run(), Error);
  }
}

TEST(Gather, EmptyTensors) {
  OpTester t("GATHER");
  t.attributes(gathering(0)).input<int32_t>({3, 0}, {}).input<int32_t>({2}, {0, 1}).output(DType::kInt32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 0}));
  OpTester none("GATHER");
  none.attributes(gathering(0)).input<int32_t>({0, 2}, {}).input<int32_t>({1}, {0}).output(DType::kInt32);
  EXPECT_THROW(none.run(), Error);
}

TEST(Gather, StringsAndInt4) {
  OpTester t("GATHER");
  string_input(t.attributes(gathering(0)), {3}, {"a", "bb", "ccc"}).input<int64_t>({2, 2}, {2, 0, 1, 2}, {}, false);
  t.output(DType::kString);
  t.run();
  EXPECT_EQ(string_result(t, 0), (std::vector<std::string>{"ccc", "a", "bb", "ccc"}));
  OpTester nibbles("GATHER");
  nibbles.attributes(gathering(0)).raw_input(DType::kInt4, {2, 3}, {std::byte{0x21}, std::byte{0x43}, std::byte{0x65}});
  nibbles.input<int32_t>({1}, {1}).output(DType::kInt4);
  nibbles.run();
  EXPECT_EQ(nibbles.result<uint8_t>(0), (std::vector<uint8_t>{0x54, 0x06}));
}

TEST(Gather, RefusesBadAttributes) {
  for (const auto& [axis, batch] : {std::pair{2, 0}, {-3, 0}, {0, 1}, {1, 2}, {1, -3}}) {
    OpTester t("GATHER");
    t.attributes(gathering(axis, batch)).input<int32_t>({2, 2}, iota(4)).input<int32_t>({2}, {0, 0});
    t.output(DType::kInt32);
    EXPECT_THROW(t.run(), Error) << axis << " " << batch;
  }
}

TEST(GatherNd, TuplesNameSlices) {
  OpTester slices("GATHER_ND");
  slices.input<int32_t>({2, 2, 2}, iota(8)).input<int32_t>({2, 1}, {1, 0}).output(DType::kInt32);
  slices.run();
  EXPECT_EQ(slices.result<int32_t>(0), (Ints{4, 5, 6, 7, 0, 1, 2, 3}));
  OpTester points("GATHER_ND");
  points.input<int32_t>({2, 2, 2}, iota(8)).input<int64_t>({2, 3}, {1, 0, 1, 0, 1, 0}).output(DType::kInt32);
  points.run();
  EXPECT_EQ(points.shape(0), (Shape{2}));
  EXPECT_EQ(points.result<int32_t>(0), (Ints{5, 2}));
}

TEST(GatherNd, EmptyTuplesTakeEverything) {
  OpTester t("GATHER_ND");
  t.input<int32_t>({2}, {7, 8}).input<int32_t>({3, 0}, {}).output(DType::kInt32);
  t.run();
  EXPECT_EQ(t.result<int32_t>(0), (Ints{7, 8, 7, 8, 7, 8}));
}

TEST(GatherNd, IndicesOutsideAreRefused) {
  OpTester t("GATHER_ND");
  t.input<int32_t>({2, 2}, iota(4)).input<int32_t>({1, 2}, {0, 2}, {}, false).output(DType::kInt32);
  EXPECT_THROW(t.run(), Error);
  OpTester wide("GATHER_ND");
  wide.input<int32_t>({2}, iota(2)).input<int32_t>({1, 2}, {0, 0}).output(DType::kInt32);
  EXPECT_THROW(wide.run(), Error);
}

TEST(GatherNd, Strings) {
  OpTester t("GATHER_ND");
  string_input(t, {2, 2}, {"a", "bb", "ccc", "d"}).input<int16_t>({2, 1}, {1, 0}).output(DType::kString);
  t.run();
  EXPECT_EQ(string_result(t, 0), (std::vector<std::string>{"ccc", "d", "a", "bb"}));
}

}  // namespace
}  // namespace leadline::ops
