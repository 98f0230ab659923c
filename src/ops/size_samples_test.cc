// SPDX-License-Identifier: Apache-2.0
// Graphs whose checks hold for some sizes only: what is unknown stays unknown, and nothing else.
#include "ops/size_samples.h"

#include <gtest/gtest.h>

#include <utility>

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

TEST(SizeSamples, NoInputIsAlwaysTheLongerOne) {
  for (const Dims& dims : {Dims{-1, -1}, Dims{-1, -1, 3}, Dims{-1, -1, -1, 3}}) {
    GraphBuilder b;
    const int x = b.input("x", DType::kFloat32, dims);
    const int y = b.input("y", DType::kFloat32, dims);
    for (const int axis : {0, 1}) {
      const int larger = b.node("MAXIMUM", {size_of(b, x, axis), size_of(b, y, axis)}, "larger");
      for (const int input : {x, y}) {
        const int missing = b.node("SUB", {larger, size_of(b, input, axis)}, "missing");
        EXPECT_FALSE(b.known(missing).has_value()) << dims.size() << " " << axis << " " << input;
      }
    }
  }
}

TEST(SizeSamples, PicturesAreFarFromSquareToo) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {-1, -1, -1, 3});
  for (const auto& [one, other] : {std::pair{1, 2}, std::pair{2, 1}}) {
    const int five_times = b.node("MUL", {size_of(b, x, other), ints(b, {5})}, "five times");
    const int most = b.node("MINIMUM", {size_of(b, x, one), five_times}, "most");
    EXPECT_FALSE(b.known(b.node("SUB", {size_of(b, x, one), most}, "cut off")).has_value()) << one;
  }
}

TEST(SizeSamples, NoAnswerOfTheSamplesIsTakenForAThreshold) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {-1, 3});
  for (const int32_t number : {17, 100'000, 2'000'000'000}) {
    for (const char* op : {"EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"}) {
      EXPECT_FALSE(b.known(b.node(op, {size_of(b, x, 0), ints(b, {number})}, "a", DType::kBool)).has_value()) << op;
      EXPECT_FALSE(b.known(b.node(op, {ints(b, {number}), size_of(b, x, 0)}, "b", DType::kBool)).has_value()) << op;
    }
  }
  EXPECT_TRUE(b.known(b.node("LESS", {size_of(b, x, 0), ints(b, {0})}, "negative", DType::kBool)).has_value());
  EXPECT_TRUE(b.known(b.node("EQUAL", {size_of(b, x, 1), ints(b, {3})}, "three", DType::kBool)).has_value());
}

TEST(SizeSamples, EveryRankHasSizes) {
  for (size_t rank = 0; rank <= static_cast<size_t>(kMaxRank); ++rank) {
    for (size_t sample = 0; sample < kSizeSamples; ++sample) {
      for (const size_t input : {size_t{0}, size_t{1}, size_t{20}}) {
        const Shape shape = sample_shape(Dims(rank, -1), sample, input, input);
        for (const int64_t size : shape) EXPECT_GE(size, 1) << rank << " " << sample << " " << input;
      }
    }
  }
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
