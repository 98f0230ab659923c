// SPDX-License-Identifier: Apache-2.0
#include "quantize/integers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "ir/sources.h"
#include "ir/verifier.h"
#include "ops/arithmetic.h"
#include "ops/concatenation.h"
#include "ops/graph_builder.h"

namespace leadline::quantize {
namespace {

using ops::GraphBuilder;

/// Ranges by tensor name; [-1, 1] for others.
struct Ranges {
  const ir::Graph& graph;
  std::map<std::string, RealRange> named = {};
  std::string unreached = {};

  std::optional<RealRange> operator()(int subgraph, int tensor, int, bool) const {
    const std::string& name = graph.subgraphs[static_cast<size_t>(subgraph)].value(tensor).name;
    if (name == unreached) return {};
    const auto found = named.find(name);
    return found != named.end() ? found->second : RealRange{-1.0, 1.0};
  }
};

const ir::Value& value(const ir::Graph& graph, const std::string& name) {
  for (const ir::Value& v : graph.subgraphs[0].values) {
    if (v.name == name) return v;
  }
  fail(ErrorCode::kInternal, "no value '{}'", name);
}

int count(const ir::Graph& graph, const std::string& op) {
  const auto& nodes = graph.subgraphs[0].nodes;
  return static_cast<int>(std::count_if(nodes.begin(), nodes.end(), [&](const auto& n) { return n.op.name() == op; }));
}

Treatments rewrite(ir::Graph& graph, const Ranges& ranges, QuantizationMode mode = QuantizationMode::kInt8,
                   const IntegerOptions& options = {}, std::function<const RecipeRule*(int, int)> recipe = nullptr) {
  TreatmentOptions wanted;
  wanted.mode = mode;
  wanted.recipe = std::move(recipe);
  Treatments treatments = plan_treatments(graph, wanted);
  const ir::Graph original = graph;
  const Ranges fixed{original, ranges.named, ranges.unreached};
  resolve_treatments(graph, treatments, fixed);
  Treatments result = quantize_integers(graph, treatments, fixed, options);
  ir::verify(graph);
  EXPECT_EQ(result[0].size(), graph.subgraphs[0].nodes.size());
  return result;
}

int dense(GraphBuilder& b, int x, const std::string& name) {
  const int w = b.constant(name + "/w", DType::kFloat32, {2, 2}, std::vector<float>{1.0F, -2.0F, 0.5F, 0.25F});
  const int bias = b.constant(name + "/b", DType::kFloat32, {2}, std::vector<float>{1.0F, -1.0F});
  return b.node("FULLY_CONNECTED", {x, w, bias}, name);
}

int concatenation(GraphBuilder& b, const std::vector<int>& inputs, const std::string& name) {
  ops::ConcatenationAttributes attributes;
  attributes.axis = 1;
  return b.node("CONCATENATION", inputs, name, attributes);
}

TEST(Integers, WeightsArePerChannelAndTheBiasHasTheProductOfScales) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 2});
  const auto graph = b.finish({dense(b, x, "y")});
  rewrite(*graph, {*graph, {{"x", {-1.0, 1.0}}, {"y", {0.0, 4.0}}}});
  const ir::Node& node = graph->subgraphs[0].nodes[1];
  ASSERT_EQ(node.op.name(), "FULLY_CONNECTED");
  EXPECT_EQ(node.version, 4);
  const auto& values = graph->subgraphs[0].values;
  const ir::Value& input = values[static_cast<size_t>(node.inputs[0])];
  const ir::Value& weights = values[static_cast<size_t>(node.inputs[1])];
  const ir::Value& bias = values[static_cast<size_t>(node.inputs[2])];
  EXPECT_EQ(weights.dtype, DType::kInt8);
  EXPECT_EQ(weights.quantization.scale, (std::vector<float>{2.0F / 127, 0.5F / 127}));
  EXPECT_EQ(bias.dtype, DType::kInt32);
  EXPECT_FLOAT_EQ(bias.quantization.scale[1], weights.quantization.scale[1] * input.quantization.scale[0]);
  const auto read = ir::read_all(*weights.source);
  EXPECT_EQ(static_cast<int8_t>(read[1]), -127);
  EXPECT_EQ(static_cast<int8_t>(read[2]), 127);
}

TEST(Integers, TheGraphKeepsItsFloatInputsAndOutputsByName) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 2});
  const auto graph = b.finish({dense(b, x, "y")});
  rewrite(*graph, {*graph});
  EXPECT_EQ(count(*graph, "QUANTIZE"), 1);
  EXPECT_EQ(count(*graph, "DEQUANTIZE"), 1);
  EXPECT_EQ(value(*graph, "x").dtype, DType::kFloat32);
  EXPECT_EQ(value(*graph, "y").dtype, DType::kFloat32);
  EXPECT_EQ(value(*graph, "x_int8").dtype, DType::kInt8);
  EXPECT_EQ(value(*graph, "y_int8").dtype, DType::kInt8);
  EXPECT_EQ(graph->signatures[0].outputs[0].second, graph->subgraphs[0].outputs[0]);
}

TEST(Integers, IntegerInputsAndOutputsNeedNoConversion) {
  for (const DType type : {DType::kInt8, DType::kUInt8}) {
    GraphBuilder b;
    const int x = b.input("x", DType::kFloat32, {1, 2});
    const auto graph = b.finish({dense(b, x, "y")});
    rewrite(*graph, {*graph}, QuantizationMode::kInt8, {type, type});
    EXPECT_EQ(value(*graph, "x").dtype, type);
    EXPECT_EQ(value(*graph, "y").dtype, type);
    EXPECT_EQ(count(*graph, "QUANTIZE"), type == DType::kInt8 ? 0 : 2);
    EXPECT_EQ(count(*graph, "DEQUANTIZE"), 0);
    EXPECT_EQ(value(*graph, "x").quantization.zero_point0(), type == DType::kInt8 ? -1 : 127);
  }
}

TEST(Integers, Int16HasWideBiasesAndNoZeroPoints) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 2});
  const auto graph = b.finish({dense(b, x, "y")});
  rewrite(*graph, {*graph, {{"x", {0.0, 2.0}}}}, QuantizationMode::kInt16x8);
  EXPECT_EQ(value(*graph, "x_int16").quantization, per_tensor({2.0F / 32767, 0}));
  const ir::Node& node = graph->subgraphs[0].nodes[1];
  const auto& values = graph->subgraphs[0].values;
  EXPECT_EQ(values[static_cast<size_t>(node.inputs[1])].dtype, DType::kInt8);
  EXPECT_EQ(values[static_cast<size_t>(node.inputs[2])].dtype, DType::kInt64);
}

TEST(Integers, SumsOfInt16DoNotClaimPowersOfTwo) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 2});
  const auto graph = b.finish({b.node("ADD", {x, x}, "y")});
  rewrite(*graph, {*graph}, QuantizationMode::kInt16x8);
  const ir::Node& node = graph->subgraphs[0].nodes[1];
  EXPECT_FALSE(static_cast<const ops::AddAttributes&>(*node.attributes).pot_scale_int16);
}

TEST(Integers, InputsOfAConcatenationGetTheParametersOfItsResult) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 2});
  const int y = dense(b, x, "y");
  const int z = concatenation(b, {x, y}, "z");
  const auto graph = b.finish({z});
  rewrite(*graph, {*graph, {{"x", {-1.0, 1.0}}, {"y", {-4.0, 4.0}}, {"z", {-4.0, 4.0}}}});
  EXPECT_EQ(count(*graph, "QUANTIZE"), 1);
  EXPECT_EQ(value(*graph, "x_int8").quantization, value(*graph, "z_int8").quantization);
  EXPECT_EQ(value(*graph, "y").quantization, value(*graph, "z_int8").quantization);
}

TEST(Integers, InputsOfAConcatenationOfInt16AreRescaled) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 2});
  const int y = dense(b, x, "y");
  const int z = concatenation(b, {x, y}, "z");
  const auto graph = b.finish({z});
  rewrite(*graph, {*graph, {{"x", {-1.0, 1.0}}, {"y", {-4.0, 4.0}}, {"z", {-4.0, 4.0}}}}, QuantizationMode::kInt16x8);
  EXPECT_EQ(value(*graph, "x_int16").quantization, per_tensor({1.0F / 32767, 0}));
  EXPECT_EQ(value(*graph, "y").quantization, value(*graph, "z_int16").quantization);
}

TEST(Integers, AFixedResultIsRescaledForAConcatenation) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 2});
  const int y = b.node("LOGISTIC", {x}, "y");
  const int z = concatenation(b, {x, y}, "z");
  const auto graph = b.finish({z});
  rewrite(*graph, {*graph, {{"x", {-4.0, 4.0}}, {"z", {-4.0, 4.0}}}});
  EXPECT_EQ(value(*graph, "y").quantization, per_tensor({1.0F / 256, -128}));
  EXPECT_EQ(value(*graph, "y_requantized").quantization, value(*graph, "z_int8").quantization);
}

TEST(Integers, ResultsOfMovementTakeOverTheirSource) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 2});
  const int perm = b.constant("perm", DType::kInt32, {2}, std::vector<int32_t>{1, 0});
  const int y = b.node("TRANSPOSE", {x, perm}, "y");
  const auto graph = b.finish({b.node("RELU", {y}, "z")});
  rewrite(*graph, {*graph, {{"x", {-3.0, 5.0}}, {"y", {-1.0, 1.0}}}});
  EXPECT_EQ(value(*graph, "y").quantization, value(*graph, "x_int8").quantization);
}

TEST(Integers, ConstantOperandsAreQuantizedByTheirContentsOrTheirNeighbours) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 2});
  const int c = b.constant("c", DType::kFloat32, {2}, std::vector<float>{0.0F, 2.55F});
  const int y = b.node("ADD", {x, c}, "y");
  const auto graph = b.finish({b.node("MAXIMUM", {y, c}, "z")});
  rewrite(*graph, {*graph, {{"z", {0.0, 5.1}}}});
  const auto& nodes = graph->subgraphs[0].nodes;
  const auto& values = graph->subgraphs[0].values;
  EXPECT_EQ(values[static_cast<size_t>(nodes[1].inputs[1])].quantization, per_tensor({2.55F / 255, -128}));
  EXPECT_EQ(values[static_cast<size_t>(nodes[2].inputs[1])].quantization, value(*graph, "z_int8").quantization);
}

TEST(Integers, FloatNodesBetweenIntegersSeeFloats) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 2});
  const int y = b.node("RELU", {x}, "y");
  const int z = b.node("COS", {y}, "z");
  const auto graph = b.finish({b.node("RELU", {z}, "w")});
  const Treatments treatments = rewrite(*graph, {*graph});
  EXPECT_EQ(count(*graph, "QUANTIZE"), 2);
  EXPECT_EQ(count(*graph, "DEQUANTIZE"), 2);
  EXPECT_EQ(value(*graph, "z").dtype, DType::kFloat32);
  EXPECT_EQ(value(*graph, "z_int8").dtype, DType::kInt8);
}

TEST(Integers, ARecipeMayMixWidths) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 2});
  const int y = b.node("RELU", {x}, "y");
  const auto graph = b.finish({b.node("TANH", {y}, "z")});
  RecipeRule wide;
  wide.mode = QuantizationMode::kInt16x8;
  rewrite(*graph, {*graph}, QuantizationMode::kInt8, {}, [&](int, int node) { return node == 1 ? &wide : nullptr; });
  EXPECT_EQ(value(*graph, "y").dtype, DType::kInt8);
  EXPECT_EQ(value(*graph, "y_int16").dtype, DType::kInt16);
  EXPECT_EQ(value(*graph, "z_int16").quantization, per_tensor({1.0F / 32768, 0}));
}

TEST(Integers, SharedWeightsOfAFloatNodeStayFloatForIt) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 2});
  const int w = b.constant("w", DType::kFloat32, {2, 2}, std::vector<float>{1.0F, 2.0F, 3.0F, 4.0F});
  const int y = b.node("FULLY_CONNECTED", {x, w}, "y");
  const auto graph = b.finish({b.node("FULLY_CONNECTED", {y, w}, "z")});
  const RecipeRule kept;
  rewrite(*graph, {*graph}, QuantizationMode::kInt8, {}, [&](int, int node) { return node == 1 ? &kept : nullptr; });
  const auto& nodes = graph->subgraphs[0].nodes;
  const auto& values = graph->subgraphs[0].values;
  ASSERT_EQ(nodes.size(), 4U);
  EXPECT_EQ(values[static_cast<size_t>(nodes[1].inputs[1])].dtype, DType::kInt8);
  EXPECT_EQ(values[static_cast<size_t>(nodes[3].inputs[1])].dtype, DType::kFloat32);
}

TEST(Integers, NodesThatNoSampleReachedStayFloat) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 2});
  const int y = b.node("RELU", {x}, "y");
  const auto graph = b.finish({y});
  Ranges ranges{*graph};
  ranges.unreached = "y";
  const Treatments treatments = rewrite(*graph, ranges);
  EXPECT_EQ(graph->subgraphs[0].nodes.size(), 1U);
  EXPECT_NE(treatments[0][0].reason.find("'y'"), std::string::npos);
}

TEST(Integers, WeightsThatAreNotFiniteAreNamed) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 2});
  const int w = b.constant("w", DType::kFloat32, {1, 2}, std::vector<float>{INFINITY, 2.0F});
  const auto graph = b.finish({b.node("FULLY_CONNECTED", {x, w}, "y")});
  try {
    rewrite(*graph, {*graph});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("'w'"), std::string::npos);
  }
}

TEST(Treatments, NodesWithoutAnIntegerFormAreListed) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 2});
  const int y = b.node("COS", {x}, "first");
  const auto graph = b.finish({b.node("SIN", {b.node("RELU", {y}, "relu")}, "second")});
  const Treatments treatments = plan_treatments(*graph, {});
  EXPECT_EQ(treatments[0][1].mode, QuantizationMode::kInt8);
  try {
    require_integers(*graph, treatments);
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_NE(text.find("COS #0 'first'"), std::string::npos) << text;
    EXPECT_NE(text.find("SIN #2 'second'"), std::string::npos) << text;
  }
}

TEST(Treatments, IntegerArithmeticIsLeftAlone) {
  GraphBuilder b;
  const int x = b.input("x", DType::kInt32, {2});
  const auto graph = b.finish({b.node("ADD", {x, x}, "y")});
  const Treatments treatments = plan_treatments(*graph, {});
  EXPECT_EQ(treatments[0][0].mode, QuantizationMode::kFloat);
  EXPECT_NO_THROW(require_integers(*graph, treatments));
}

TEST(Treatments, AQuantizedModelIsRefused) {
  GraphBuilder b;
  Quantization quantization;
  quantization.scale = {0.5F};
  quantization.zero_point = {0};
  const int x = b.input("x", DType::kInt8, {2}, quantization);
  const auto graph = b.finish({b.node("DEQUANTIZE", {x}, "y", DType::kFloat32)});
  EXPECT_THROW(require_float_model(*graph), Error);
}

}  // namespace
}  // namespace leadline::quantize
