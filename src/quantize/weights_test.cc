// SPDX-License-Identifier: Apache-2.0
#include "quantize/weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/half.h"
#include "ir/sources.h"
#include "ir/verifier.h"
#include "leadline/error.h"
#include "model/reader.h"
#include "model/writer.h"
#include "ops/fully_connected.h"
#include "ops/graph_builder.h"

namespace leadline::quantize {
namespace {

std::vector<float> ramp(int64_t count, float step = 0.01F) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = step * static_cast<float>(static_cast<int>(i % 251) - 125);
  return values;
}

Treatments all(const ir::Graph& graph, QuantizationMode mode) {
  Treatments treatments(graph.subgraphs.size());
  for (size_t s = 0; s < treatments.size(); ++s) {
    treatments[s].assign(graph.subgraphs[s].nodes.size(), {mode, ""});
  }
  return treatments;
}

std::string ops_of(const ir::Graph& graph) {
  std::string text;
  for (const ir::Node& node : graph.subgraphs[0].nodes) text += fmt::format("{}:{} ", node.op.name(), node.version);
  return text;
}

const ir::Value& input_of(const ir::Graph& graph, size_t node, size_t input) {
  const ir::Subgraph& subgraph = graph.subgraphs[0];
  return subgraph.value(subgraph.nodes[node].inputs[input]);
}

/// FULLY_CONNECTED with 32 x 64 weights and a bias.
std::shared_ptr<ir::Graph> dense(const std::vector<float>& weights = ramp(2048)) {
  ops::GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {2, 64});
  const int w = b.constant("w", DType::kFloat32, {32, 64}, weights);
  const int bias = b.constant("bias", DType::kFloat32, {32}, ramp(32));
  return b.finish({b.node("FULLY_CONNECTED", {x, w, bias}, "y")});
}

TEST(QuantizeWeights, HybridPerChannelReplacesTheConstant) {
  const auto graph = dense();
  const size_t values = graph->subgraphs[0].values.size();
  const Treatments after = quantize_weights(*graph, all(*graph, QuantizationMode::kDynamicRange), {});
  ir::verify(*graph);
  EXPECT_EQ(ops_of(*graph), "FULLY_CONNECTED:12 ");
  EXPECT_EQ(after[0].size(), 1U);
  EXPECT_EQ(graph->subgraphs[0].values.size(), values);
  const ir::Value& weights = input_of(*graph, 0, 1);
  EXPECT_EQ(weights.dtype, DType::kInt8);
  EXPECT_EQ(weights.quantization.scale.size(), 32U);
  EXPECT_EQ(weights.quantization.axis, 0);
  EXPECT_EQ(input_of(*graph, 0, 2).dtype, DType::kFloat32);
  EXPECT_TRUE(static_cast<const ops::FullyConnectedAttributes&>(*graph->subgraphs[0].nodes[0].attributes)
                  .asymmetric_quantize_inputs);
  const auto bytes = ir::read_all(*weights.source);
  const std::vector<float> floats = ramp(2048);
  for (size_t i = 0; i < floats.size(); ++i) {
    const float scale = weights.quantization.scale[i / 64];
    EXPECT_NEAR(static_cast<float>(static_cast<int8_t>(bytes[i])) * scale, floats[i], scale * 0.501F);
  }
}

TEST(QuantizeWeights, PerTensorWhenAskedFor) {
  for (const WeightOptions& options :
       {WeightOptions{.per_channel = false}, WeightOptions{.per_channel_dense = false}}) {
    const auto graph = dense();
    quantize_weights(*graph, all(*graph, QuantizationMode::kDynamicRange), options);
    EXPECT_EQ(ops_of(*graph), "FULLY_CONNECTED:9 ");
    EXPECT_EQ(input_of(*graph, 0, 1).quantization.scale.size(), 1U);
  }
}

TEST(QuantizeWeights, SmallWeightsStayFloat) {
  const auto graph = dense();
  WeightOptions options;
  options.min_weight_elements = 2049;
  const ir::Subgraph& subgraph = graph->subgraphs[0];
  EXPECT_EQ(weights_obstacle(subgraph, subgraph.nodes[0], {QuantizationMode::kDynamicRange}, options),
            "weights 'w' have 2048 elements, fewer than 2049");
  quantize_weights(*graph, all(*graph, QuantizationMode::kDynamicRange), options);
  EXPECT_EQ(input_of(*graph, 0, 1).dtype, DType::kFloat32);
  EXPECT_EQ(ops_of(*graph), "FULLY_CONNECTED:1 ");
}

TEST(QuantizeWeights, Float16TakesAllConstants) {
  const auto graph = dense();
  const Treatments after = quantize_weights(*graph, all(*graph, QuantizationMode::kFloat16), {});
  ir::verify(*graph);
  EXPECT_EQ(ops_of(*graph), "DEQUANTIZE:3 DEQUANTIZE:3 FULLY_CONNECTED:1 ");
  ASSERT_EQ(after[0].size(), 3U);
  EXPECT_EQ(after[0][0].mode, QuantizationMode::kFloat);
  EXPECT_EQ(after[0][2].mode, QuantizationMode::kFloat16);
  EXPECT_EQ(input_of(*graph, 0, 0).dtype, DType::kFloat16);
  EXPECT_EQ(input_of(*graph, 2, 1).name, "w_dequantized");
}

TEST(QuantizeWeights, WidenedInt4HalvesTheFileOfInt8) {
  const auto eight = dense();
  const auto four = dense();
  quantize_weights(*eight, all(*eight, QuantizationMode::kWeightOnlyInt8), {});
  quantize_weights(*four, all(*four, QuantizationMode::kWeightOnlyInt4), {});
  ir::verify(*four);
  EXPECT_EQ(ops_of(*eight), "DEQUANTIZE:5 FULLY_CONNECTED:1 ");
  EXPECT_EQ(ops_of(*four), "DEQUANTIZE:6 FULLY_CONNECTED:1 ");
  EXPECT_EQ(ir::constant_bytes(input_of(*eight, 0, 0)), 2048);
  EXPECT_EQ(ir::constant_bytes(input_of(*four, 0, 0)), 1024);
  const std::vector<std::byte> file = model::write(*four);
  const auto read = model::read(ModelBytes::copy(file));
  EXPECT_EQ(input_of(*read, 0, 0).dtype, DType::kInt4);
}

TEST(QuantizeWeights, Int4ForKernelsThatMultiplyIntegers) {
  const auto graph = dense();
  quantize_weights(*graph, all(*graph, QuantizationMode::kDynamicInt4), {});
  ir::verify(*graph);
  const ir::Value& weights = input_of(*graph, 0, 1);
  EXPECT_EQ(weights.dtype, DType::kInt4);
  EXPECT_EQ(weights.quantization.scale.size(), 32U);
  EXPECT_EQ(ir::constant_bytes(weights), 1024);

  ops::GraphBuilder b;
  const int rows = b.input("rows", DType::kInt32, {3});
  const auto gather =
      b.finish({b.node("GATHER", {b.constant("table", DType::kFloat32, {100, 16}, ramp(1600)), rows}, "taken")});
  EXPECT_EQ(weights_obstacle(gather->subgraphs[0], gather->subgraphs[0].nodes[0], {QuantizationMode::kDynamicInt4}, {}),
            "its kernel does not take weights of 4 bits with float activations");
}

TEST(QuantizeWeights, BlocksHaveScalesOfTheirOwn) {
  std::vector<float> floats = ramp(2048);
  for (size_t i = 0; i < 32; ++i) floats[i] *= 100.0F;        // one block of large weights
  std::fill(floats.begin() + 32, floats.begin() + 64, 0.0F);  // and one of none
  const auto graph = dense(floats);
  Treatments treatments = all(*graph, QuantizationMode::kDynamicInt4);
  treatments[0][0].weights.block_size = 32;
  quantize_weights(*graph, treatments, {});
  ir::verify(*graph);
  const auto read = model::read(ModelBytes::copy(model::write(*graph)));
  const ir::Value& weights = input_of(*read, 0, 1);
  EXPECT_EQ(weights.quantization.block_size, 32);
  EXPECT_TRUE(weights.quantization.scale.empty());
  const ir::Value& scales = read->subgraphs[0].value(weights.quantization.block_scales);
  EXPECT_EQ(scales.shape, (Shape{32, 2}));
  for (size_t i = 0; i < floats.size(); ++i) {
    const float scale = half_to_float(reinterpret_cast<const uint16_t*>(scales.data.data())[i / 32]);
    ASSERT_GT(scale, 0.0F);
    const int nibble = static_cast<int>(weights.data[i / 2]) >> (i % 2 == 0 ? 0 : 4) & 0xF;
    const int level = nibble < 8 ? nibble : nibble - 16;
    EXPECT_NEAR(static_cast<float>(level) * scale, floats[i], scale * 0.505F) << i;
  }

  const ir::Subgraph& subgraph = graph->subgraphs[0];
  const auto plain = dense();
  NodeTreatment odd{QuantizationMode::kDynamicInt4};
  odd.weights.block_size = 96;
  EXPECT_EQ(weights_obstacle(plain->subgraphs[0], plain->subgraphs[0].nodes[0], odd, {}),
            "weights 'w' of shape [32, 64] do not divide into blocks of 96");
  odd = {QuantizationMode::kDynamicRange};
  odd.weights.block_size = 32;
  EXPECT_EQ(weights_obstacle(subgraph, plain->subgraphs[0].nodes[0], odd, {}),
            "only weights of 4 bits have scales for blocks");
}

TEST(QuantizeWeights, WidenedWeightsMayHaveZeroPoints) {
  std::vector<float> floats = ramp(2048);
  for (float& value : floats) value = 3.0F + value;  // all above 0
  const auto graph = dense(floats);
  Treatments treatments = all(*graph, QuantizationMode::kWeightOnlyInt8);
  treatments[0][0].weights.symmetric = false;
  quantize_weights(*graph, treatments, {});
  ir::verify(*graph);
  const ir::Value& weights = input_of(*graph, 0, 0);
  ASSERT_EQ(weights.quantization.zero_point.size(), 32U);
  EXPECT_EQ(weights.quantization.zero_point[0], -128);
  const auto bytes = ir::read_all(*weights.source);
  for (size_t i = 0; i < floats.size(); ++i) {
    const float scale = weights.quantization.scale[i / 64];
    const auto level = static_cast<int64_t>(static_cast<int8_t>(bytes[i])) - weights.quantization.zero_point[i / 64];
    EXPECT_NEAR(static_cast<float>(level) * scale, floats[i], scale * 0.501F);
  }
  floats[3] = std::numeric_limits<float>::infinity();
  const auto endless = dense(floats);
  EXPECT_THROW(quantize_weights(*endless, treatments, {}), Error);
}

TEST(QuantizeWeights, SharedConstantsAreStoredOnceAndFloatReadersKeepTheirs) {
  ops::GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {64, 64});
  const int w = b.constant("w", DType::kFloat32, {64, 64}, ramp(4096));
  const int y = b.node("FULLY_CONNECTED", {x, w, ir::kAbsent}, "y");
  const int z = b.node("FULLY_CONNECTED", {y, w, ir::kAbsent}, "z");
  const auto graph = b.finish({b.node("ADD", {z, w}, "sum")});
  quantize_weights(*graph, all(*graph, QuantizationMode::kDynamicRange), {});
  ir::verify(*graph);
  EXPECT_EQ(input_of(*graph, 0, 1).dtype, DType::kInt8);
  EXPECT_EQ(&input_of(*graph, 0, 1), &input_of(*graph, 1, 1));
  EXPECT_EQ(input_of(*graph, 2, 1).dtype, DType::kFloat32);
  EXPECT_EQ(input_of(*graph, 2, 1).name, "w");
}

TEST(QuantizeWeights, GatherMovesIntegersAndWidensTheRowsItTook) {
  ops::GraphBuilder b;
  const int rows = b.input("rows", DType::kInt32, {3});
  const int table = b.constant("table", DType::kFloat32, {100, 16}, ramp(1600));
  const auto graph = b.finish({b.node("GATHER", {table, rows}, "taken")});
  quantize_weights(*graph, all(*graph, QuantizationMode::kDynamicRange), {});
  ir::verify(*graph);
  EXPECT_EQ(ops_of(*graph), "GATHER:2 DEQUANTIZE:2 ");
  EXPECT_EQ(input_of(*graph, 1, 0).dtype, DType::kInt8);
  EXPECT_EQ(input_of(*graph, 1, 0).quantization, input_of(*graph, 0, 0).quantization);
  const ir::Subgraph& subgraph = graph->subgraphs[0];
  EXPECT_EQ(subgraph.value(subgraph.outputs[0]).name, "taken");
}

TEST(QuantizeWeights, NamesWeightsThatAreNotFinite) {
  std::vector<float> weights = ramp(2048);
  weights[7] = std::numeric_limits<float>::quiet_NaN();
  const auto graph = dense(weights);
  try {
    quantize_weights(*graph, all(*graph, QuantizationMode::kDynamicRange), {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'w'"), std::string::npos);
  }
}

TEST(QuantizeWeights, ZeroChannelsHaveALegalScale) {
  std::vector<float> weights = ramp(2048);
  std::fill(weights.begin(), weights.begin() + 64, 0.0F);
  const auto graph = dense(weights);
  quantize_weights(*graph, all(*graph, QuantizationMode::kDynamicRange), {});
  ir::verify(*graph);
  EXPECT_GT(input_of(*graph, 0, 1).quantization.scale[0], 0.0F);
}

}  // namespace
}  // namespace leadline::quantize
