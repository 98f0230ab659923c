// SPDX-License-Identifier: Apache-2.0
#include "leadline/debugger.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "leadline/debug_model.h"
#include "model/writer.h"
#include "ops/graph_builder.h"

namespace leadline {
namespace {

Quantization scaled(float scale, int zero_point) {
  Quantization q;
  q.scale = {scale};
  q.zero_point = {zero_point};
  return q;
}

/// y = relu(x) + x; quantized with steps of 1/64 and 1/32.
Model float_model() {
  ops::GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 8});
  const int r = b.node("RELU", {x}, "model/act/Relu");
  const int y = b.node("ADD", {r, x}, "model/sum/add");
  return Model::from_bytes(model::write(*b.finish({y})));
}

Model quantized_model(bool integer_input, float input_scale = 1.0F / 64) {
  ops::GraphBuilder b;
  const Quantization in = scaled(input_scale, 0);
  int x = b.input("x", integer_input ? DType::kInt8 : DType::kFloat32, {1, 8}, integer_input ? in : Quantization{});
  if (!integer_input) {
    x = b.add({.op = "QUANTIZE", .inputs = {x}, .outputs = {{"x_int8", DType::kInt8, in}}})[0];
  }
  const int r = b.add({.op = "RELU", .inputs = {x}, .outputs = {{"renamed", DType::kInt8, in}}})[0];
  const int y = b.add({.op = "ADD", .inputs = {r, x}, .outputs = {{"sum", DType::kInt8, scaled(1.0F / 32, 0)}}})[0];
  const int out = b.node("DEQUANTIZE", {y}, "y", DType::kFloat32);
  return Model::from_bytes(model::write(*b.finish({integer_input ? y : out})));
}

DebugResult run(const Model& reference, const Model& quantized, const std::vector<std::vector<float>>& samples,
                DebugOptions options = {}) {
  QuantizationDebugger debugger(reference, quantized, std::move(options));
  for (const auto& sample : samples) {
    Interpreter& interpreter = debugger.interpreter();
    interpreter.set_tensor(interpreter.inputs()[0], std::as_bytes(std::span(sample)));
    debugger.add_sample();
  }
  return debugger.result();
}

const std::vector<float> kSample = {-1.0F, -0.7F, -0.3F, 0.0F, 0.2F, 0.511F, 0.7F, 0.9F};

TEST(QuantizationDebugger, TellsOwnErrorFromErrorSoFar) {
  const DebugResult result = run(float_model(), quantized_model(false), {kSample});
  ASSERT_EQ(result.layers.size(), 3U);
  EXPECT_EQ(result.samples, 1);
  const LayerDebug& input = result.layers[0];
  const LayerDebug& relu = result.layers[1];
  const LayerDebug& sum = result.layers[2];
  EXPECT_EQ(input.op, "QUANTIZE");
  EXPECT_EQ(relu.layer, "act");  // found by structure: the names differ
  EXPECT_EQ(sum.layer, "sum");
  ASSERT_TRUE(relu.own && relu.accumulated && sum.own && sum.accumulated);
  EXPECT_EQ(relu.own->max_abs_error, 0.0);
  EXPECT_GT(relu.accumulated->max_abs_error, 0.0);
  double squared = 0.0;
  for (float x : kSample) {
    const double step = std::round(static_cast<double>(x) * 64) / 64;
    squared += (step - static_cast<double>(x)) * (step - static_cast<double>(x));
  }
  EXPECT_NEAR(input.own->mean_squared_error, squared / 8, 1e-9);
  EXPECT_EQ(sum.inputs, (std::vector<int>{1, 0}));
  ASSERT_EQ(result.outputs.size(), 1U);
  EXPECT_EQ(result.outputs[0].layer, 2);
  EXPECT_EQ(result.outputs[0].same_argmax, 1.0);
  EXPECT_NEAR(result.outputs[0].accumulated.rmse, sum.accumulated->rmse, 1e-12);
}

TEST(QuantizationDebugger, RoundsAndClipsForIntegerInputs) {
  const DebugResult result = run(float_model(), quantized_model(true), {{-9, 9, 0, 0, 0, 0, 0, 0}});
  const LayerDebug& input = result.layers[0];
  EXPECT_EQ(input.node, -1);
  EXPECT_EQ(input.saturated, 0.25);
  EXPECT_NEAR(input.own->max_abs_error, 9 - 127.0 / 64, 1e-6);
  ASSERT_FALSE(result.suspects.empty());
  EXPECT_EQ(result.suspects[0].kind, "saturation");
}

TEST(QuantizationDebugger, CountsNaN) {
  std::vector<float> sample = kSample;
  sample[2] = std::numeric_limits<float>::quiet_NaN();
  const DebugResult result = run(float_model(), quantized_model(false), {kSample, sample});
  EXPECT_GT(result.layers[0].accumulated->not_finite, 0);
  EXPECT_TRUE(std::isfinite(result.layers[0].accumulated->rmse));
  // The float model computes NaN too: that is no fault of the integers.
  EXPECT_EQ(result.layers[0].accumulated->broken, 0);
  for (const DebugSuspect& suspect : result.suspects) EXPECT_NE(suspect.kind, "not_finite") << suspect.why;
}

TEST(QuantizationDebugger, DoesNotTakeFloat16ForFloat32) {
  ops::GraphBuilder b;
  const int x = b.input("x", DType::kFloat16, {1, 8});
  const Model half = Model::from_bytes(model::write(*b.finish({b.node("CEIL", {x}, "y")})));
  QuantizationDebugger debugger(half, half);
  EXPECT_NO_THROW(debugger.add_sample());
  for (const LayerDebug& layer : debugger.result().layers) EXPECT_FALSE(layer.own || layer.accumulated);
}

TEST(QuantizationDebugger, SamplesAddUpAndClearForgetsThem) {
  const Model reference = float_model(), quantized = quantized_model(false);
  QuantizationDebugger debugger(reference, quantized);
  for (int i = 0; i < 3; ++i) {
    debugger.interpreter().set_tensor(debugger.interpreter().inputs()[0], std::as_bytes(std::span(kSample)));
    debugger.add_sample();
  }
  EXPECT_EQ(debugger.result().layers[0].own->elements, 24);
  debugger.clear();
  EXPECT_EQ(debugger.result().samples, 0);
  EXPECT_FALSE(debugger.result().layers[0].own.has_value());
}

TEST(QuantizationDebugger, RoundsLeaveNothingBehind) {
  const auto budget = Budget::with_limit(1 << 20);
  const Model reference = float_model(), quantized = quantized_model(false);
  for (int round = 0; round < 3; ++round) {
    DebugOptions options;
    options.budget = budget;
    EXPECT_EQ(run(reference, quantized, {kSample}, options).layers.size(), 3U);
    EXPECT_EQ(budget->used(), 0);
  }
}

TEST(QuantizationDebugger, RefusesModelsThatDoNotBelongTogether) {
  ops::GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {4});
  const int y = b.input("y", DType::kFloat32, {4});
  const Model other = Model::from_bytes(model::write(*b.finish({b.node("ADD", {x, y}, "z")})));
  EXPECT_THROW(QuantizationDebugger(other, quantized_model(false)), Error);
}

/// What is said when these are given as float and quantized model.
std::string refusal(const Model& reference, const Model& quantized) {
  try {
    const QuantizationDebugger debugger(reference, quantized);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(QuantizationDebugger, RefusesModelsInTheWrongOrder) {
  EXPECT_NE(refusal(quantized_model(false), float_model()).find("wrong order: the float model comes first"),
            std::string::npos);
  EXPECT_NE(refusal(quantized_model(false), quantized_model(false)).find("is quantized itself"), std::string::npos);
}

TEST(QuantizationDebugger, RefusesModelsThatOnlyTakeTheSameInput) {
  ops::GraphBuilder b;
  const int x = b.input("x", DType::kFloat32, {1, 8});
  const Model other = Model::from_bytes(model::write(*b.finish({b.node("CEIL", {x}, "other")})));
  const std::string said = refusal(other, quantized_model(false));
  EXPECT_NE(said.find("do not belong together"), std::string::npos) << said;
}

TEST(DebugModel, HasAVerifyBesideEachQuantizedNode) {
  const Model debug = Model::from_bytes(make_debug_model(float_model(), quantized_model(false)));
  DebugModelObserver observer(debug);
  ASSERT_EQ(observer.layers().size(), 2U);
  EXPECT_EQ(observer.layers()[0].tensor_name, "renamed");
  EXPECT_EQ(observer.layers()[1].op, "ADD");
  Interpreter interpreter(debug);
  interpreter.add_observer(&observer);
  for (int i = 0; i < 2; ++i) {
    interpreter.set_tensor(interpreter.inputs()[0], std::as_bytes(std::span(kSample)));
    interpreter.invoke();
  }
  const auto statistics = observer.statistics();
  EXPECT_EQ(statistics[1].samples, 2);
  EXPECT_EQ(statistics[1].num_elements, 8);
  EXPECT_GT(statistics[1].stddev, 0.0);
  EXPECT_LT(statistics[1].max_abs_error, 1.5 / 32);
}

TEST(DebugModel, IsRequiredByItsObserver) { EXPECT_THROW(DebugModelObserver{quantized_model(false)}, Error); }

}  // namespace
}  // namespace leadline
