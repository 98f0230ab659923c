// SPDX-License-Identifier: Apache-2.0
// Graphs whose checks hold for some sizes only: what is unknown stays unknown, and nothing else.
#include "ops/size_samples.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "ops/conv.h"
#include "ops/graph_builder.h"
#include "ops/shape.h"
#include "ops/slice.h"
#include "tests/cpp/sketch.h"

namespace leadline::ops {
namespace {

using testing::thrown_by;

int ints(GraphBuilder& b, const std::vector<int32_t>& v) {
  return b.constant("ints", DType::kInt32, {static_cast<int64_t>(v.size())}, v);
}

int shape_of(GraphBuilder& b, int x) {
  ShapeAttributes attributes;
  attributes.out_type = DType::kInt32;
  return b.node("SHAPE", {x}, "shape", attributes, DType::kInt32);
}

/// Size number `axis` of `x`, as a vector of one.
int size_of(GraphBuilder& b, int x, int axis) {
  return b.node("SLICE", {shape_of(b, x), ints(b, {axis}), ints(b, {1})}, "size");
}

/// The first rows of a table, as many as `x` is long.
int positions(GraphBuilder& b, int x, int32_t rows) {
  const std::vector<float> numbers(static_cast<size_t>(rows) * 2);
  const int table = b.constant("table", DType::kFloat32, {rows, 2}, numbers);
  const int sizes = b.node("CONCATENATION", {size_of(b, x, 1), ints(b, {2})}, "sizes");
  return b.node("SLICE", {table, ints(b, {0, 0}), sizes}, "positions");
}

TEST(SizeSamples, ATableIsSlicedToAnUnknownLength) {
  for (const int32_t rows : {2, 5, 300, 5000}) {
    GraphBuilder b;
    const int x = b.input("x", DType::kFloat32, {-1, -1, 2});
    const int y = b.node("ADD", {x, positions(b, x, rows)}, "y");
    EXPECT_EQ(b.dims(y), (Dims{-1, -1, 2})) << rows;
    EXPECT_FALSE(b.known(size_of(b, x, 1)).has_value()) << rows;
  }
}

TEST(SizeSamples, InputsOfDifferentLengthsHaveTheirOwnTables) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {-1, -1, 2});
  const int image = b.input("image", DType::kFloat32, {-1, -1, -1, 3});
  const int y = positions(b, x, 5);
  auto conv = std::make_shared<Conv2DAttributes>();
  conv->stride_w = conv->stride_h = 1;
  conv->padding = ir::Padding::kValid;
  const int filter = b.constant("filter", DType::kFloat32, {1, 40, 40, 3}, std::vector<float>(4800));
  const int bias = b.constant("bias", DType::kFloat32, {1}, std::vector<float>(1));
  const int z = b.node("CONV_2D", {image, filter, bias}, "z", conv, DType::kFloat32);
  EXPECT_EQ(b.dims(y), (Dims{-1, 2}));
  EXPECT_EQ(b.dims(z), (Dims{-1, -1, -1, 1}));
}

TEST(SizeSamples, WhatHoldsForLargeSizesOnlyIsNoConstant) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {-1, -1});
  EXPECT_FALSE(b.known(b.node("MINIMUM", {size_of(b, x, 1), ints(b, {100})}, "at most")).has_value());
  EXPECT_FALSE(b.known(b.node("EQUAL", {size_of(b, x, 1), ints(b, {1})}, "one", DType::kBool)).has_value());
  EXPECT_FALSE(b.known(b.node("GREATER", {size_of(b, x, 0), size_of(b, x, 1)}, "more", DType::kBool)).has_value());
}

TEST(SizeSamples, HeightAndWidthAreNotTheSame) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {-1, -1, -1, 3});
  EXPECT_FALSE(b.known(b.node("EQUAL", {size_of(b, x, 1), size_of(b, x, 2)}, "square", DType::kBool)).has_value());
}

TEST(SizeSamples, WhatIsLeftOfADivisionIsNoConstant) {
  for (const Dims& dims : {Dims{-1, -1, -1, 3}, Dims{-1, -1}}) {
    GraphBuilder b;
    const int x = b.input("x", DType::kFloat32, dims);
    for (const int axis : {0, 1}) {
      for (const int32_t divisor : {2, 3, 4, 5, 7, 8, 16, 32, 105}) {
        const int rest = b.node("FLOOR_MOD", {size_of(b, x, axis), ints(b, {divisor})}, "rest");
        EXPECT_FALSE(b.known(rest).has_value()) << axis << " " << divisor;
      }
      const int few = b.node("LESS", {size_of(b, x, axis), ints(b, {2})}, "few", DType::kBool);
      EXPECT_FALSE(b.known(few).has_value()) << axis;
    }
  }
}

TEST(SizeSamples, ASizeThatNoTableFitsIsAnError) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {-1, 7, 2});
  const auto thrown = thrown_by([&] { positions(b, x, 5); });
  EXPECT_TRUE(thrown.names("a slice of 7 elements does not fit into dimension 0 of shape [5, 2]")) << thrown.message;
  // What failed has ruled nothing out.
  EXPECT_EQ(b.dims(b.node("ADD", {x, positions(b, x, 7)}, "y")), (Dims{-1, 7, 2}));
}

TEST(SizeSamples, ASizeOfOneThatGoesDoesNotCount) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {-1, 1, -1});
  EXPECT_EQ(b.dims(b.node("SQUEEZE", {x}, "y")), (Dims{-1, -1}));
}

TEST(SizeSamples, GraphsWithoutUnknownSizesHaveOneSample) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 7});
  EXPECT_EQ(b.known_ints(shape_of(b, x)), (std::vector<int64_t>{2, 7}));
  const int y = b.input("y", DType::kFloat32, {-1, 7});  // what was known before stays
  EXPECT_EQ(b.dims(b.node("ADD", {x, y}, "sum")), (Dims{2, 7}));
}

}  // namespace
}  // namespace leadline::ops
