// SPDX-License-Identifier: Apache-2.0
#include "quantize/recurrent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/graph_builder.h"
#include "ops/sequence_lstm.h"
#include "passes/passes.h"
#include "quantize/cell_states.h"
#include "quantize/integers.h"

namespace leadline::quantize {
namespace {

using ops::GraphBuilder;

struct LstmOptions {
  bool sets_states = true;
  bool projection = false;
  bool peephole = false;
  ir::Activation activation = ir::Activation::kTanh;
};

/// Two cells over [1, 3, 2].
std::shared_ptr<ir::Graph> lstm(const LstmOptions& options) {
  GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 3, 2});
  const auto matrix = [&](const std::string& name, const ops::Dims& dims) {
    const auto count = static_cast<size_t>(dims[0] * (dims.size() > 1 ? dims[1] : 1));
    std::vector<float> values(count, 0.25F);
    values[0] = -1.27F;
    return b.constant(name, DType::kFloat32, dims, values);
  };
  ops::NodeSpec spec;
  spec.op = "UNIDIRECTIONAL_SEQUENCE_LSTM";
  spec.inputs.assign(20, ir::kAbsent);
  spec.inputs[0] = x;
  for (size_t gate = 0; gate < 4; ++gate) {
    const std::string number = std::to_string(gate);
    spec.inputs[1 + gate] = matrix("w" + number, {2, 2});
    spec.inputs[5 + gate] = matrix("r" + number, {2, 2});
    spec.inputs[12 + gate] = matrix("b" + number, {2});
  }
  for (size_t i = 9; options.peephole && i < 12; ++i) spec.inputs[i] = matrix("p" + std::to_string(i), {2});
  if (options.projection) spec.inputs[16] = matrix("projection", {2, 2});
  if (options.sets_states) {
    const int row = b.constant("row", DType::kInt32, {2}, std::vector<int32_t>{1, 6});
    const int all = b.node("RESHAPE", {x, row}, "all");
    const int zeros = b.constant("zeros", DType::kFloat32, {1, 1}, std::vector<float>{0.0F});
    const int begin = b.constant("begin", DType::kInt32, {2}, std::vector<int32_t>{0, 0});
    const int size = b.constant("size", DType::kInt32, {2}, std::vector<int32_t>{1, 2});
    const int first = b.node("SLICE", {all, begin, size}, "first");
    spec.inputs[18] = b.node("MUL", {first, zeros}, "h");
    spec.inputs[19] = b.node("MUL", {first, zeros}, "c");
  } else {
    spec.inputs[18] = b.variable("h", DType::kFloat32, {1, 2});
    spec.inputs[19] = b.variable("c", DType::kFloat32, {1, 2});
  }
  auto attributes = std::make_shared<ops::SequenceLstmAttributes>();
  attributes->activation = options.activation;
  spec.attributes = attributes;
  spec.outputs.push_back({"y", DType::kFloat32});
  return b.finish({b.add(std::move(spec)).at(0)});
}

const ir::Value& named(const ir::Graph& graph, const std::string& name) {
  for (const ir::Value& v : graph.subgraphs[0].values) {
    if (v.name == name) return v;
  }
  throw std::runtime_error("no value " + name);
}

/// y is in [-0.5, 0.5], c in [-c, c], the rest in [-1, 1].
Treatments rewrite(ir::Graph& graph, double c, QuantizationMode mode = QuantizationMode::kInt8) {
  TreatmentOptions wanted;
  wanted.mode = mode;
  Treatments treatments = plan_treatments(graph, wanted);
  const ir::Graph original = graph;
  const RangeOf range_of = [&original, c](int, int tensor, int, bool) -> std::optional<RealRange> {
    const std::string& name = original.subgraphs[0].value(tensor).name;
    const double limit = name == "c" ? c : name == "y" ? 0.5 : 1.0;
    return RealRange{-limit, limit};
  };
  resolve_treatments(graph, treatments, range_of);
  Treatments result = quantize_integers(graph, treatments, range_of, {});
  passes::remove_dead(graph);
  return result;
}

const ir::Node& node(const ir::Graph& graph, const std::string& op) {
  for (const ir::Node& n : graph.subgraphs[0].nodes) {
    if (n.op.name() == op) return n;
  }
  throw std::runtime_error("no node " + op);
}

TEST(Recurrent, AnLstmHasInt8StatesAndInt16CellStates) {
  const auto graph = lstm({});
  rewrite(*graph, 1.5);
  const ir::Value& h = named(*graph, "h");
  const ir::Value& c = named(*graph, "c");
  EXPECT_EQ(h.dtype, DType::kInt8);
  EXPECT_TRUE(h.variable);
  EXPECT_EQ(h.quantization, named(*graph, "y_int8").quantization);
  EXPECT_EQ(c.dtype, DType::kInt16);
  EXPECT_EQ(c.quantization, per_tensor({0x1p-14F, 0}));
  const ir::Node& fused = node(*graph, "UNIDIRECTIONAL_SEQUENCE_LSTM");
  ASSERT_EQ(fused.intermediates.size(), 5U);
  const auto& values = graph->subgraphs[0].values;
  EXPECT_EQ(values[static_cast<size_t>(fused.intermediates[4])].quantization, h.quantization);
  EXPECT_FLOAT_EQ(named(*graph, "w0").quantization.scale0(), 0.01F);
  EXPECT_FLOAT_EQ(named(*graph, "b0").quantization.scale0(), 0.01F * named(*graph, "x_int8").quantization.scale0());
  EXPECT_EQ(named(*graph, "b0").dtype, DType::kInt32);
}

TEST(Recurrent, CellStatesHaveScalesThatKernelsTake) {
  for (const auto& [range, exponent] : {std::pair{0.01, -15}, {0.99, -15}, {1.01, -14}, {3.9, -13}, {1000.0, -9}}) {
    const auto graph = lstm({});
    rewrite(*graph, range);
    EXPECT_EQ(named(*graph, "c").quantization.scale0(), std::ldexp(1.0F, exponent)) << range;
  }
}

TEST(Recurrent, StatesAreSetToZerosOfTheirTypes) {
  const auto graph = lstm({});
  rewrite(*graph, 1.0);
  const auto& nodes = graph->subgraphs[0].nodes;
  EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(), [](const auto& n) { return n.op.name() == "MUL"; }), 2);
  const ir::Node& cast = node(*graph, "CAST");
  const ir::Value& from = graph->subgraphs[0].value(cast.inputs[0]);
  EXPECT_EQ(from.dtype, DType::kInt8);
  EXPECT_EQ(from.quantization.zero_point0(), 0);
  EXPECT_EQ(graph->subgraphs[0].value(cast.outputs[0]).name, "c");
}

TEST(Recurrent, VariablesThatNoNodeSetsBecomeIntegersToo) {
  const auto graph = lstm({.sets_states = false});
  const Treatments treatments = rewrite(*graph, 1.0);
  EXPECT_EQ(named(*graph, "h").dtype, DType::kInt8);
  EXPECT_EQ(named(*graph, "c").dtype, DType::kInt16);
  EXPECT_EQ(treatments[0].size(), 3U);  // QUANTIZE, the op, DEQUANTIZE
}

TEST(Recurrent, ProjectionsAndPeepholes) {
  const auto graph = lstm({.projection = true, .peephole = true});
  rewrite(*graph, 1.0);
  EXPECT_EQ(named(*graph, "p9").dtype, DType::kInt16);
  EXPECT_EQ(named(*graph, "projection").dtype, DType::kInt8);
  const ir::Node& fused = node(*graph, "UNIDIRECTIONAL_SEQUENCE_LSTM");
  const auto& hidden = graph->subgraphs[0].value(fused.intermediates[4]);
  EXPECT_FLOAT_EQ(hidden.quantization.scale0(), static_cast<float>(2 * std::tanh(1.0)) / 255.0F);
}

TEST(Recurrent, Int16MeansTheSameForm) {
  const auto graph = lstm({});
  rewrite(*graph, 1.0, QuantizationMode::kInt16x8);
  EXPECT_EQ(named(*graph, "h").dtype, DType::kInt8);
  const ir::Node& fused = node(*graph, "UNIDIRECTIONAL_SEQUENCE_LSTM");
  EXPECT_EQ(graph->subgraphs[0].value(fused.inputs[0]).dtype, DType::kInt8);
}

TEST(Recurrent, OtherActivationsStayFloatAndSoDoTheNodesThatSetTheStates) {
  const auto graph = lstm({.activation = ir::Activation::kRelu});
  const Treatments treatments = rewrite(*graph, 1.0);
  EXPECT_EQ(named(*graph, "h").dtype, DType::kFloat32);
  int reasons = 0;
  for (const NodeTreatment& treatment : treatments[0]) reasons += treatment.reason.empty() ? 0 : 1;
  EXPECT_EQ(reasons, 1);
}

TEST(CellStates, ShowsEveryStepAndLeavesTheStatesAlone) {
  const auto graph = lstm({.sets_states = false});
  const ir::Subgraph& subgraph = graph->subgraphs[0];
  const std::vector<float> x = {1.0F, 2.0F, -1.0F, 0.5F, 0.0F, 3.0F};
  const std::vector<float> zeros(2);
  std::vector<ObservedTensor> inputs;
  for (const int v : node(*graph, "UNIDIRECTIONAL_SEQUENCE_LSTM").inputs) {
    ObservedTensor tensor;
    tensor.index = v;
    if (v >= 0) {
      const ir::Value& value = subgraph.value(v);
      tensor.shape = value.shape;
      tensor.data = value.constant ? value.data : std::as_bytes(std::span(value.variable ? zeros : x));
    }
    inputs.push_back(tensor);
  }
  ObservedNode observed;
  observed.inputs = inputs;
  CellStates states(*graph);
  std::vector<std::vector<float>> seen;
  states.replay(observed, [&](int tensor, std::span<const float> values) {
    EXPECT_EQ(subgraph.value(tensor).name, "c");
    seen.emplace_back(values.begin(), values.end());
  });
  ASSERT_EQ(seen.size(), 3U);
  // The first step by hand, of the second cell: all gates are 0.25 * (1 + 2) + 0.25.
  const float gate = 1.0F / (1.0F + std::exp(-1.0F));
  EXPECT_NEAR(seen[0][1], gate * std::tanh(1.0F), 1e-6);
  EXPECT_EQ(zeros, std::vector<float>(2));
  EXPECT_GE(CellStates::bytes(*graph), 4 * (2 + 2 + 2));
}

}  // namespace
}  // namespace leadline::quantize
