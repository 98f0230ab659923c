// SPDX-License-Identifier: Apache-2.0
#include "ops/embedding.h"

#include <gtest/gtest.h>

#include "core/half.h"
#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;

OpTester lookup(const Ints& ids) {
  OpTester t("EMBEDDING_LOOKUP");
  t.input<int32_t>({static_cast<int64_t>(ids.size())}, ids, {}, false);
  return t;
}

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

Quantization per_row(std::vector<float> scales) {
  Quantization q;
  q.zero_point.resize(scales.size());
  q.scale = std::move(scales);
  return q;
}

TEST(EmbeddingLookup, CopiesRowsOfAnyRank) {
  OpTester t = lookup({2, 0, 2});
  t.input<float>({3, 1, 2}, {0, 1, 10, 11, 20, 21}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{3, 1, 2}));
  EXPECT_EQ(t.result<float>(0), (Floats{20, 21, 0, 1, 20, 21}));
}

TEST(EmbeddingLookup, DequantizesWithOneScaleOrOneForEachRow) {
  OpTester t = lookup({1, 0});
  t.input<int8_t>({2, 2}, {-128, 1, 2, 127}, quantized(0.5F)).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.result<float>(0), (Floats{1, 63.5, -64, 0.5}));
  OpTester rows = lookup({1, 0});
  rows.input<int8_t>({2, 2}, {-128, 1, 2, 127}, per_row({0.5F, 2})).output(DType::kFloat32);
  rows.run();
  EXPECT_EQ(rows.result<float>(0), (Floats{4, 254, -64, 0.5}));
}

TEST(EmbeddingLookup, DequantizesToHalf) {
  OpTester t = lookup({0});
  t.input<int8_t>({1, 2}, {-3, 7}, quantized(0.5F)).output(DType::kFloat16);
  t.run();
  EXPECT_EQ(t.result<uint16_t>(0), (std::vector<uint16_t>{float_to_half(-1.5F), float_to_half(3.5F)}));
}

TEST(EmbeddingLookup, UnpacksFourAndTwoBits) {
  OpTester four = lookup({1});
  four.raw_input(DType::kInt4, {2, 4}, bytes_of({0, 0, 0x7F, 0x18}), per_row({1, 0.5F})).output(DType::kFloat32);
  four.run();
  EXPECT_EQ(four.result<float>(0), (Floats{-0.5, 3.5, -4, 0.5}));
  OpTester two = lookup({1});
  two.raw_input(DType::kInt2, {2, 4}, bytes_of({0, 0b11100100}), per_row({1, 0.5F})).output(DType::kFloat32);
  two.run();
  EXPECT_EQ(two.result<float>(0), (Floats{0, 0.5, -1, -0.5}));
}

TEST(EmbeddingLookup, WidensHalfConstants) {
  OpTester t = lookup({1});
  std::vector<std::byte> table(4);
  const uint16_t halves[] = {float_to_half(1.0F), float_to_half(-0.25F)};
  std::memcpy(table.data(), halves, sizeof(halves));
  t.raw_input(DType::kFloat16, {2, 1}, table).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.result<float>(0), (Floats{-0.25}));
}

TEST(EmbeddingLookup, RefusesRowsOutsideAndOddTables) {
  for (const int32_t id : {-1, 2}) {
    OpTester t = lookup({id});
    t.input<float>({2, 1}, {0, 1}).output(DType::kFloat32);
    EXPECT_THROW(t.run(), Error);
  }
  OpTester shifted = lookup({0});
  shifted.input<int8_t>({1, 1}, {0}, quantized(1, 3)).output(DType::kFloat32);
  EXPECT_THROW(shifted.run(), Error);
  OpTester columns = lookup({0});
  Quantization q = per_row({1, 2});
  q.axis = 1;
  columns.input<int8_t>({2, 2}, {0, 0, 0, 0}, q).output(DType::kFloat32);
  EXPECT_THROW(columns.run(), Error);
  OpTester flat = lookup({0});
  flat.input<float>({2}, {0, 1}).output(DType::kFloat32);
  EXPECT_THROW(flat.run(), Error);
}

OpTester sparse(Combiner combiner, const Ints& ids, const Ints& indices, const Ints& shape, const Floats& weights) {
  EmbeddingLookupSparseAttributes a;
  a.combiner = combiner;
  const auto count = static_cast<int64_t>(ids.size());
  const auto rank = static_cast<int64_t>(shape.size());
  OpTester t("EMBEDDING_LOOKUP_SPARSE");
  t.attributes(a).input<int32_t>({count}, ids).input<int32_t>({count, rank}, indices);
  t.input<int32_t>({rank}, shape, {}, false).input<float>({count}, weights);
  t.input<float>({3, 2}, {0, 1, 10, 11, 20, 21}).output(DType::kFloat32);
  t.run();
  return t;
}

TEST(EmbeddingLookupSparse, CombinesRows) {
  const Ints indices = {0, 0, 2, 0, 2, 1};
  const OpTester sum = sparse(Combiner::kSum, {1, 2, 0}, indices, {3, 2}, {1, 3, 4});
  EXPECT_EQ(sum.shape(0), (Shape{3, 2}));
  EXPECT_EQ(sum.result<float>(0), (Floats{10, 11, 0, 0, 60, 67}));
  EXPECT_EQ(sparse(Combiner::kMean, {1, 2, 0}, indices, {3, 2}, {1, 3, 4}).result<float>(0),
            (Floats{10, 11, 0, 0, 60.0F / 7, 67.0F / 7}));
  EXPECT_EQ(sparse(Combiner::kSqrtN, {1, 2, 0}, indices, {3, 2}, {1, 3, 4}).result<float>(0),
            (Floats{10, 11, 0, 0, 12, 67.0F / 5}));
}

TEST(EmbeddingLookupSparse, RefusesIndicesOutside) {
  EXPECT_THROW(sparse(Combiner::kSum, {3}, {0, 0}, {1, 1}, {1}), Error);
  EXPECT_THROW(sparse(Combiner::kSum, {0}, {1, 0}, {1, 1}, {1}), Error);
  EXPECT_THROW(sparse(Combiner::kSum, {0}, {-1, 0}, {1, 1}, {1}), Error);
  EXPECT_THROW(sparse(Combiner::kSum, {0}, {0, 0}, {-1, 1}, {1}), Error);
}

}  // namespace
}  // namespace leadline::ops
