// SPDX-License-Identifier: Apache-2.0
#include "ops/graph_builder.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "ops/concatenation.h"
#include "tests/cpp/sketch.h"

namespace leadline::ops {
namespace {

using testing::thrown_by;

TEST(GraphBuilder, InfersShapesAsNodesAreAdded) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 3});
  const int row = b.constant("row", DType::kFloat32, {1, 3}, std::vector<float>{1, 2, 3});
  const int sum = b.node("ADD", {x, row}, "sum");
  EXPECT_EQ(b.value(sum).shape, (Shape{2, 3}));
  auto attributes = std::make_shared<ConcatenationAttributes>();
  attributes->axis = 1;
  const int wide = b.node("CONCATENATION", {x, sum}, "wide", attributes, DType::kFloat32);
  EXPECT_EQ(b.value(wide).shape, (Shape{2, 6}));
  const auto graph = b.finish({wide});
  ASSERT_EQ(graph->signatures.size(), 1U);
  EXPECT_EQ(graph->signatures[0].inputs[0], (std::pair<std::string, int>{"x", x}));
  EXPECT_EQ(graph->signatures[0].outputs[0], (std::pair<std::string, int>{"wide", wide}));
}

TEST(GraphBuilder, AnswersWithTheOpsOwnValidation) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 3});
  const int y = b.input("y", DType::kFloat32, {4});
  const auto thrown = thrown_by([&] { b.node("ADD", {x, y}, "sum"); });
  EXPECT_EQ(thrown.code, ErrorCode::kInvalidModel);
  EXPECT_TRUE(thrown.names("ADD #0 'sum'")) << thrown.message;
}

TEST(GraphBuilder, RefusesUnknownOps) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1});
  const auto thrown = thrown_by([&] { b.node("NO_SUCH_OP", {x}, "y"); });
  EXPECT_EQ(thrown.code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(thrown.names("NO_SUCH_OP")) << thrown.message;
}

TEST(GraphBuilder, OpsThatNeedASessionAreRefused) {
  GraphBuilder b;
  const int x = b.input("x", DType::kBool, {1});
  EXPECT_EQ(thrown_by([&] { b.node("IF", {x}, "y"); }).code, ErrorCode::kUnsupported);
}

TEST(GraphBuilder, TheGraphIsVerified) {
  GraphBuilder b;
  b.input("x", DType::kFloat32, {1});
  EXPECT_EQ(thrown_by([&] { b.finish({5}); }).code, ErrorCode::kInvalidModel);
  GraphBuilder wrong;
  wrong.constant("c", DType::kFloat32, {4}, std::vector<float>{1});
  EXPECT_TRUE(thrown_by([&] { wrong.finish({0}); }).names("needs 16 bytes"));
}

}  // namespace
}  // namespace leadline::ops
