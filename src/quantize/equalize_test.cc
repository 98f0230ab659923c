// SPDX-License-Identifier: Apache-2.0
#include "quantize/equalize.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/conv.h"
#include "ops/fully_connected.h"
#include "ops/graph_builder.h"
#include "quantize/bias_correction.h"
#include "quantize/constants.h"

namespace leadline::quantize {
namespace {

using ops::GraphBuilder;

std::vector<float> contents(const ir::Graph& graph, int node, int input) {
  const ir::Subgraph& subgraph = graph.subgraphs[0];
  const int v = subgraph.nodes[static_cast<size_t>(node)].inputs[static_cast<size_t>(input)];
  const Floats floats(subgraph.value(v));
  return {floats.values().begin(), floats.values().end()};
}

/// x -> 2 channels of very different weights -> y.
std::shared_ptr<ir::Graph> two_layers(ir::Activation activation, bool between_is_output = false) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 2});
  const int w1 = b.constant("w1", DType::kFloat32, {2, 2}, std::vector<float>{100.0F, 50.0F, 0.01F, 0.02F});
  const int b1 = b.constant("b1", DType::kFloat32, {2}, std::vector<float>{10.0F, 0.1F});
  const int w2 = b.constant("w2", DType::kFloat32, {1, 2}, std::vector<float>{1.0F, 2.0F});
  ops::FullyConnectedAttributes attributes;
  attributes.activation = activation;
  const int h = b.node("FULLY_CONNECTED", {x, w1, b1}, "h", attributes);
  const int y = b.node("FULLY_CONNECTED", {h, w2}, "y");
  return b.finish(between_is_output ? std::vector<int>{h, y} : std::vector<int>{y});
}

/// What the two layers compute for x = (1, 2).
float result(const ir::Graph& graph) {
  const auto w1 = contents(graph, 0, 1);
  const auto b1 = contents(graph, 0, 2);
  const auto w2 = contents(graph, 1, 1);
  float sum = 0.0F;
  for (size_t c = 0; c < 2; ++c) sum += w2[c] * std::max(w1[2 * c] + 2.0F * w1[2 * c + 1] + b1[c], 0.0F);
  return sum;
}

TEST(Equalize, ChannelsBecomeEqualAndTheResultStays) {
  const auto graph = two_layers(ir::Activation::kRelu);
  const float before = result(*graph);
  EXPECT_EQ(equalize(*graph), 1);
  EXPECT_NEAR(result(*graph), before, before * 1e-5F);
  const auto w1 = contents(*graph, 0, 1);
  const auto w2 = contents(*graph, 1, 1);
  EXPECT_NEAR(w1[0], std::abs(w2[0]), 1e-3F);
  EXPECT_NEAR(w1[3], std::abs(w2[1]), 1e-3F);
}

TEST(Equalize, BoundedActivationsAndSharedValuesAreLeftAlone) {
  EXPECT_EQ(equalize(*two_layers(ir::Activation::kRelu6)), 0);
  EXPECT_EQ(equalize(*two_layers(ir::Activation::kRelu, true)), 0);
}

TEST(Equalize, DepthwiseLayersPassFactorsBothWays) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 1, 1, 2});
  const int w1 = b.constant("w1", DType::kFloat32, {2, 1, 1, 2}, std::vector<float>{8.0F, 0.0F, 0.0F, 0.5F});
  const int w2 = b.constant("w2", DType::kFloat32, {1, 1, 1, 2}, std::vector<float>{0.5F, 4.0F});
  const int w3 = b.constant("w3", DType::kFloat32, {1, 1, 1, 2}, std::vector<float>{1.0F, 1.0F});
  const int bias = b.constant("b", DType::kFloat32, {2}, std::vector<float>{0.0F, 0.0F});
  const int one = b.constant("one", DType::kFloat32, {1}, std::vector<float>{0.0F});
  ops::Conv2DAttributes conv;
  conv.stride_w = conv.stride_h = 1;
  ops::DepthwiseConv2DAttributes depthwise;
  depthwise.stride_w = depthwise.stride_h = 1;
  depthwise.depth_multiplier = 1;
  const int h1 = b.node("CONV_2D", {x, w1, bias}, "h1", conv);
  const int h2 = b.node("DEPTHWISE_CONV_2D", {h1, w2, bias}, "h2", depthwise);
  const auto graph = b.finish({b.node("CONV_2D", {h2, w3, one}, "y", conv)});
  EXPECT_EQ(equalize(*graph), 2);
  const auto first = contents(*graph, 0, 1);
  const auto second = contents(*graph, 1, 1);
  const auto third = contents(*graph, 2, 1);
  // Products along each channel are what they were: 8 * 0.5 * 1 and 0.5 * 4 * 1.
  EXPECT_NEAR(first[0] * second[0] * third[0], 4.0F, 1e-4F);
  EXPECT_NEAR(first[3] * second[1] * third[1], 2.0F, 1e-4F);
  EXPECT_NEAR(first[0], second[0], 0.02F);
  EXPECT_NEAR(second[0], third[0], 0.02F);
}

TEST(BiasCorrection, MakesUpForWhatRoundingTakesFromTheMean) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 2});
  const std::vector<float> weights = {1.27F, 0.104F, -0.5F, 0.3333F};
  const int w = b.constant("w", DType::kFloat32, {2, 2}, weights);
  const auto graph = b.finish({b.node("FULLY_CONNECTED", {x, w}, "y")});
  const Treatments treatments = plan_treatments(*graph, {});
  const std::vector<double> means = {3.0, 100.0};
  const MeansOf means_of = [&](int, int tensor) { return tensor == x ? means : std::vector<double>{}; };
  EXPECT_EQ(correct_biases(*graph, treatments, means_of, {}), 1);
  const auto bias = contents(*graph, 0, 2);
  ASSERT_EQ(bias.size(), 2U);
  // Scales are 0.01 and 0.5 / 127; 0.104 is rounded to 0.10.
  EXPECT_NEAR(bias[0], 0.004F * 100.0F, 1e-4F);
  const double scale = 0.5 / 127;
  const double rounded = std::round(0.3333 / scale) * scale;
  EXPECT_NEAR(bias[1], (0.3333 - rounded) * 100.0, 1e-3);
}

TEST(BiasCorrection, FloatNodesAndUnknownMeansAreLeftAlone) {
  const auto graph = two_layers(ir::Activation::kNone);
  Treatments treatments = plan_treatments(*graph, {});
  EXPECT_EQ(correct_biases(*graph, treatments, [](int, int) { return std::vector<double>{}; }, {}), 0);
  for (NodeTreatment& node : treatments[0]) node.mode = QuantizationMode::kFloat;
  EXPECT_EQ(correct_biases(*graph, treatments, [](int, int) { return std::vector<double>{1.0, 1.0}; }, {}), 0);
}

TEST(BiasCorrection, SumsLeaveOutRowsThatAreNotFinite) {
  ChannelSums sums;
  const std::vector<float> values = {1.0F, 2.0F, NAN, 5.0F, 3.0F, 4.0F};
  sums.add(std::as_bytes(std::span(values)), 2);
  EXPECT_EQ(sums.rows, 2);
  EXPECT_EQ(sums.sums, (std::vector<double>{4.0, 6.0}));
}

}  // namespace
}  // namespace leadline::quantize
