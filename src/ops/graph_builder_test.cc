// SPDX-License-Identifier: Apache-2.0
#include "ops/graph_builder.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "ir/sources.h"
#include "model/writer.h"
#include "ops/concatenation.h"
#include "ops/control_flow.h"
#include "ops/pooling.h"
#include "ops/shape.h"
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
  const int handle = b.node("VAR_HANDLE", {}, "handle", DType::kResource);
  EXPECT_EQ(thrown_by([&] { b.node("READ_VARIABLE", {handle}, "y", DType::kFloat32); }).code, ErrorCode::kUnsupported);
}

TEST(GraphBuilder, TheGraphIsVerified) {
  GraphBuilder b;
  b.input("x", DType::kFloat32, {1});
  EXPECT_EQ(thrown_by([&] { b.finish({5}); }).code, ErrorCode::kInvalidArgument);
  GraphBuilder wrong;
  EXPECT_TRUE(thrown_by([&] { wrong.constant("c", DType::kFloat32, {4}, std::vector<float>{1}); }).names("16 bytes"));
}

TEST(GraphBuilder, ARefusedNodeLeavesNothingBehind) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 3});
  const int y = b.input("y", DType::kFloat32, {4});
  EXPECT_TRUE(thrown_by([&] { b.node("ADD", {x, y}, "sum"); }).code.has_value());
  EXPECT_TRUE(thrown_by([&] { b.node("ADD", {x, 77}, "sum"); }).names("value 77"));
  const int sum = b.node("ADD", {x, x}, "sum");
  EXPECT_EQ(b.value(sum).name, "sum");
  EXPECT_EQ(b.finish({sum})->subgraphs[0].nodes.size(), 1U);
}

TEST(GraphBuilder, NamesStayUnique) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1});
  const int first = b.node("RELU", {x}, "x");
  const int second = b.node("RELU", {first}, "x");
  EXPECT_EQ(b.value(first).name, "x_1");
  EXPECT_EQ(b.value(second).name, "x_2");
}

TEST(GraphBuilder, UnknownDimensionsStayUnknown) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {-1, -1, -1, 3});
  EXPECT_EQ(b.dims(x), (Dims{-1, -1, -1, 3}));
  EXPECT_EQ(b.value(x).shape, (Shape{1, 1, 1, 3}));
  EXPECT_EQ(b.value(x).signature, (std::vector<int32_t>{-1, -1, -1, 3}));
  PoolAttributes pool;
  pool.stride_w = pool.stride_h = pool.filter_width = pool.filter_height = 2;
  const int y = b.node("MAX_POOL_2D", {x}, "y", pool);
  EXPECT_EQ(b.dims(y), (Dims{-1, -1, -1, 3}));
  const int axes = b.constant("axes", DType::kInt32, {2}, std::vector<int32_t>{1, 2});
  const int mean = b.node("MEAN", {y, axes}, "mean");
  EXPECT_EQ(b.dims(mean), (Dims{-1, 3}));
  EXPECT_FALSE(b.value(axes).signature.has_value());
}

TEST(GraphBuilder, ShapeArithmeticFolds) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {-1, 4, 5});
  ShapeAttributes attributes;
  attributes.out_type = DType::kInt32;
  const int shape = b.node("SHAPE", {x}, "shape", attributes, DType::kInt32);
  EXPECT_FALSE(b.known(shape).has_value());  // the batch is not known
  const auto ints = [&](const std::vector<int32_t>& v) {
    return b.constant("ints", DType::kInt32, {static_cast<int64_t>(v.size())}, v);
  };
  const int tail = b.node("SLICE", {shape, ints({1}), ints({2})}, "tail");
  EXPECT_EQ(b.known_ints(tail), (std::vector<int64_t>{4, 5}));
  const int zero = ints({0});
  const int product = b.node("REDUCE_PROD", {tail, zero}, "product");
  EXPECT_EQ(b.known_ints(product), std::vector<int64_t>{20});
  // A shape computed from unknown sizes still has what is known.
  const int batch = b.node("SLICE", {shape, ints({0}), ints({1})}, "batch");
  ConcatenationAttributes join;
  const int flat = b.node("RESHAPE", {product, ints({1})}, "one");
  const int target = b.node("CONCATENATION", {batch, flat}, "target", join);
  EXPECT_FALSE(b.known(target).has_value());
  const int y = b.node("RESHAPE", {x, target}, "y");
  EXPECT_EQ(b.dims(y), (Dims{-1, 20}));
  const auto graph = b.finish({y});
  EXPECT_EQ(graph->subgraphs[0].nodes.size(), 4U) << ir::to_text(*graph);  // SHAPE, SLICE, CONCATENATION, RESHAPE
}

TEST(GraphBuilder, LargeConstantsStaySources) {
  GraphBuilder b;
  const auto large = ir::owned_source(std::vector<std::byte>(8192));
  const int c = b.constant("large", DType::kFloat32, {2048}, large);
  const int small = b.constant("small", DType::kFloat32, {2}, ir::owned_source(std::vector<std::byte>(8)));
  EXPECT_EQ(b.value(c).source, large);
  EXPECT_FALSE(b.known(c).has_value());
  EXPECT_TRUE(b.known(small).has_value());
  EXPECT_TRUE(thrown_by([&] { b.constant("wrong", DType::kFloat32, {3}, large); }).names("8192"));
  const int x = b.input("x", DType::kFloat32, {1, 2048});
  EXPECT_EQ(b.dims(b.node("ADD", {x, c}, "y")), (Dims{1, 2048}));
}

TEST(GraphBuilder, NodesMayHaveSeveralOutputs) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {-1, 4});
  const int k = b.constant("k", DType::kInt32, {}, std::vector<int32_t>{2});
  const auto outputs = b.add({"TOPK_V2", {x, k}, {{"best"}, {"where", DType::kInt32}}});
  ASSERT_EQ(outputs.size(), 2U);
  EXPECT_EQ(b.dims(outputs[1]), (Dims{-1, 2}));
  const auto graph = b.finish({{"x", x}}, {{"scores", outputs[0]}, {"indices", outputs[1]}}, "predict");
  EXPECT_EQ(graph->signatures[0].key, "predict");
  EXPECT_EQ(graph->signatures[0].outputs[1], (std::pair<std::string, int>{"indices", outputs[1]}));
}

TEST(GraphBuilder, ErrorsNameTheirScope) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 3});
  const auto model = b.scope("model");
  const auto thrown = thrown_by([&] {
    const auto layer = b.scope("dense (Dense)");
    b.node("NO_SUCH_OP", {x}, "y");
  });
  EXPECT_TRUE(thrown.names("model/dense (Dense): unknown op")) << thrown.message;
  EXPECT_TRUE(thrown_by([&] { b.node("NO_SUCH_OP", {x}, "y"); }).names("model: unknown op"));
}

TEST(GraphBuilder, ShapesThatDependOnDataMustBeGiven) {
  GraphBuilder b;
  const int x = b.input("x", DType::kBool, {4, 4});
  EXPECT_EQ(thrown_by([&] { b.node("WHERE", {x}, "y", DType::kInt64); }).code, ErrorCode::kUnsupported);
  const auto y = b.add({"WHERE", {x}, {{"y", DType::kInt64, {}, Dims{-1, 2}}}});
  EXPECT_EQ(b.dims(y[0]), (Dims{-1, 2}));
}

TEST(GraphBuilder, BodiesOfLoopsAreSubgraphs) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {-1, 2});
  const int zero = b.constant("zero", DType::kInt32, {}, std::vector<int32_t>{0});
  WhileAttributes loop;
  loop.cond_subgraph = b.begin_subgraph("cond");
  {
    const int i = b.input("i", DType::kInt32, {});
    b.input("state", DType::kFloat32, {-1, 2});
    const int limit = b.constant("limit", DType::kInt32, {}, std::vector<int32_t>{3});
    b.end_subgraph({b.node("LESS", {i, limit}, "more", DType::kBool)});
  }
  loop.body_subgraph = b.begin_subgraph("body");
  {
    const int i = b.input("i", DType::kInt32, {});
    const int state = b.input("state", DType::kFloat32, {-1, 2});
    const int one = b.constant("one", DType::kInt32, {}, std::vector<int32_t>{1});
    const int next = b.node("ADD", {i, one}, "next");
    b.end_subgraph({next, b.node("ADD", {state, state}, "twice")});
  }
  const auto outputs =
      b.add({"WHILE", {zero, x}, {{"count", DType::kInt32}, {"result"}}, std::make_shared<WhileAttributes>(loop)});
  EXPECT_EQ(b.dims(outputs[0]), Dims{});
  EXPECT_EQ(b.dims(outputs[1]), (Dims{-1, 2}));
  const auto graph = b.finish({outputs[1]});
  Interpreter interpreter(Model::from_bytes(model::write(*graph)));
  EXPECT_EQ(testing::run<float>(interpreter, {1, 2}), (std::vector<float>{8, 16}));
}

}  // namespace
}  // namespace leadline::ops
