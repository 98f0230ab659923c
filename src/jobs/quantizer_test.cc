// SPDX-License-Identifier: Apache-2.0
// Quantization through the public API: what comes out runs, what it takes is counted, and what cannot be is refused.
#include "leadline/quantizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "leadline/interpreter.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::set;
using testing::Sketch;
using testing::thrown_by;

constexpr DType kF32 = DType::kFloat32;

/// Two dense layers whose channels differ, then an op of the caller's choice.
Sketch small_model(const std::string& last = "TANH") {
  Sketch s;
  const int x = s.input("x", kF32, {1, 2});
  const int w1 = s.constant<float>("w1", kF32, {2, 2}, {8.0F, -4.0F, 0.125F, 0.25F});
  const int b1 = s.constant<float>("b1", kF32, {2}, {0.5F, 0.0625F});
  const int w2 = s.constant<float>("w2", kF32, {2, 2}, {0.03F, 1.0F, -0.05F, 0.4F});
  const int h = s.compute("FULLY_CONNECTED", {x, w1, b1}, "h", kF32, {1, 2}, {{"fused_activation_function", 1}});
  const int g = s.compute("FULLY_CONNECTED", {h, w2, -1}, "g", kF32, {1, 2});
  s.outputs({s.compute(last, {g}, "y", kF32, {1, 2})});
  return s;
}

std::vector<float> sample(int i) { return {std::sin(static_cast<float>(i)), std::cos(static_cast<float>(3 * i))}; }

Calibration calibrate(const Model& model) {
  Calibrator calibrator(model);
  for (int i = 0; i < 16; ++i) {
    set<float>(calibrator.interpreter(), 0, sample(i));
    calibrator.add_sample();
  }
  return calibrator.calibration();
}

template <typename T = float>
std::vector<T> run(const Model& model, const std::vector<T>& x) {
  Interpreter interpreter(model);
  set<T>(interpreter, interpreter.inputs()[0], x);
  interpreter.invoke();
  const TensorMemory memory = interpreter.tensor(interpreter.outputs()[0]);
  std::vector<T> values(static_cast<size_t>(memory.bytes) / sizeof(T));
  std::memcpy(values.data(), memory.data, static_cast<size_t>(memory.bytes));
  return values;
}

/// Largest difference of the outputs for the samples.
float error(const Model& model, const std::vector<std::byte>& quantized) {
  const Model result = Model::from_bytes(quantized);
  float largest = 0.0F;
  for (int i = 0; i < 16; ++i) {
    const auto exact = run(model, sample(i));
    const auto near = run(result, sample(i));
    for (size_t j = 0; j < exact.size(); ++j) largest = std::max(largest, std::abs(exact[j] - near[j]));
  }
  return largest;
}

TEST(Quantizer, IntegersComputeNearlyTheSame) {
  const Model model = small_model().load();
  const Calibration calibration = calibrate(model);
  QuantizeOptions options;
  EXPECT_LT(error(model, Quantizer(model, options).quantize(&calibration)), 0.03F);
  options.mode = QuantizationMode::kInt16x8;
  EXPECT_LT(error(model, Quantizer(model, options).quantize(&calibration)), 0.02F);
}

TEST(Quantizer, InputsAndOutputsMayBeIntegers) {
  const Model model = small_model().load();
  const Calibration calibration = calibrate(model);
  QuantizeOptions options;
  options.input_type = DType::kUInt8;
  options.output_type = DType::kInt8;
  const Model result = Model::from_bytes(Quantizer(model, options).quantize(&calibration));
  const SubgraphInfo graph = result.subgraph(0);
  const TensorInfo& x = graph.tensors[static_cast<size_t>(graph.inputs[0])];
  const TensorInfo& y = graph.tensors[static_cast<size_t>(graph.outputs[0])];
  EXPECT_EQ(x.dtype, DType::kUInt8);
  EXPECT_EQ(x.name, "x");
  EXPECT_EQ(y.dtype, DType::kInt8);
  EXPECT_EQ(y.name, "y");
}

TEST(Quantizer, SaysWhatBecomesOfEachNode) {
  const Quantizer quantizer(small_model("COS").load());
  const auto nodes = quantizer.nodes();
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_EQ(nodes[0].mode, QuantizationMode::kInt8);
  EXPECT_EQ(nodes[0].name, "h");
  EXPECT_EQ(nodes[2].mode, QuantizationMode::kFloat);
  EXPECT_NE(nodes[2].reason.find("COS"), std::string::npos);
}

TEST(Quantizer, IntegersAloneAreRefusedForOpsWithoutThem) {
  QuantizeOptions options;
  options.allow_float = false;
  const Model model = small_model("COS").load();
  const auto thrown = thrown_by([&] { Quantizer(model, options); });
  EXPECT_EQ(thrown.code, ErrorCode::kUnsupported);
  EXPECT_TRUE(thrown.names("COS #2 'y'")) << thrown.message;
}

TEST(Quantizer, ARecipeKeepsNodesFloat) {
  const Model model = small_model().load();
  QuantizeOptions options;
  RecipeRule rule;
  rule.name = "^g$";
  options.recipe = {rule};
  const Quantizer quantizer(model, options);
  EXPECT_EQ(quantizer.nodes()[1].mode, QuantizationMode::kFloat);
  const Calibration calibration = calibrate(model);
  EXPECT_LT(error(model, quantizer.quantize(&calibration)), 0.03F);
}

TEST(Quantizer, QuantizedModelsAndContradictionsAreRefused) {
  const Model model = small_model().load();
  const Calibration calibration = calibrate(model);
  const Model quantized = Model::from_bytes(Quantizer(model).quantize(&calibration));
  EXPECT_EQ(thrown_by([&] { Quantizer{quantized}; }).code, ErrorCode::kUnsupported);
  EXPECT_EQ(thrown_by([&] { Quantizer(model).quantize(); }).code, ErrorCode::kInvalidArgument);
  const Calibration other = calibrate(small_model("COS").load());
  EXPECT_EQ(thrown_by([&] { Quantizer(model).quantize(&other); }).code, ErrorCode::kInvalidArgument);
  QuantizeOptions options;
  options.input_type = DType::kInt16;
  EXPECT_EQ(thrown_by([&] { Quantizer(model, options); }).code, ErrorCode::kInvalidArgument);
  options.mode = QuantizationMode::kFloat16;
  EXPECT_EQ(thrown_by([&] { Quantizer(model, options); }).code, ErrorCode::kInvalidArgument);
}

TEST(Quantizer, EqualizedModelsAreCalibratedAsSuch) {
  const Model model = small_model().load();
  QuantizeOptions options;
  options.equalize = true;
  options.per_channel_dense = false;
  const Quantizer quantizer(model, options);
  const Calibration own = calibrate(quantizer.model());
  const auto x = sample(2);
  EXPECT_NEAR(run(quantizer.model(), x)[0], run(model, x)[0], 1e-5F);
  const float equalized = error(model, quantizer.quantize(&own));
  options.equalize = false;
  const Calibration plain = calibrate(model);
  EXPECT_LT(equalized, error(model, Quantizer(model, options).quantize(&plain)));
  EXPECT_EQ(thrown_by([&] { quantizer.quantize(&plain); }).code, ErrorCode::kInvalidArgument);
}

TEST(Quantizer, BiasCorrectionNeedsMeans) {
  const Model model = small_model().load();
  QuantizeOptions options;
  options.bias_correction = true;
  const Quantizer quantizer(model, options);
  const Calibration calibration = calibrate(model);
  EXPECT_EQ(thrown_by([&] { quantizer.quantize(&calibration); }).code, ErrorCode::kInvalidArgument);
  ChannelMeans means(model);
  for (int i = 0; i < 16; ++i) {
    set<float>(means.interpreter(), 0, sample(i));
    means.add_sample();
  }
  EXPECT_EQ(means.samples(), 16);
  EXPECT_EQ(means.means(0).size(), 2U);
  EXPECT_LT(error(model, quantizer.quantize(&calibration, &means)), 0.03F);
}

TEST(Quantizer, ThePlanCoversWhatIsChargedAndAllIsGivenBack) {
  const auto budget = Budget::with_limit(64 << 20);
  const Model model = small_model().load(budget);
  const Calibration calibration = calibrate(model);
  const int64_t before = budget->used();
  {
    const Quantizer quantizer(model);
    const QuantizationPlan plan = quantizer.plan(&calibration);
    budget->reset_peak();
    const auto file = quantizer.quantize(&calibration);
    EXPECT_EQ(plan.result_bytes, static_cast<int64_t>(file.size()));
    EXPECT_GE(plan.peak_bytes, plan.result_bytes);
    EXPECT_EQ(budget->peak() - before, plan.peak_bytes);
  }
  EXPECT_EQ(budget->used(), before);
}

/// Two branches of different ranges that are concatenated: one has to be rescaled. Their biases are zeros.
Sketch branching_model() {
  Sketch s;
  const int x = s.input("x", kF32, {1, 2});
  const int w1 = s.constant<float>("w1", kF32, {2, 2}, {8.0F, -4.0F, 3.0F, 7.1F});
  const int w2 = s.constant<float>("w2", kF32, {2, 2}, {0.3F, 0.7F, -0.5F, 0.4F});
  const int b1 = s.constant<float>("b1", kF32, {2}, {0.0F, 0.0F});
  const int b2 = s.constant<float>("b2", kF32, {2}, {0.0F, 0.0F});
  const int wide = s.compute("FULLY_CONNECTED", {x, w1, b1}, "wide", kF32, {1, 2});
  const int narrow = s.compute("FULLY_CONNECTED", {x, w2, b2}, "narrow", kF32, {1, 2});
  const int both = s.compute("CONCATENATION", {wide, narrow}, "both", kF32, {1, 4}, {{"axis", 1}});
  s.outputs({s.compute("ADD", {both, both}, "y", kF32, {1, 4}), s.compute("TANH", {narrow}, "z", kF32, {1, 2})});
  return s;
}

TEST(Quantizer, ThePlanWithoutACalibrationIsAnUpperBound) {
  for (const QuantizationMode mode : {QuantizationMode::kInt8, QuantizationMode::kInt16x8}) {
    for (const bool corrects : {false, true}) {
      const auto budget = Budget::with_limit(64 << 20);
      const Model model = branching_model().load(budget);
      const Calibration calibration = calibrate(model);
      ChannelMeans means(model);
      for (int i = 0; i < 16; ++i) {
        set<float>(means.interpreter(), 0, sample(i));
        means.add_sample();
      }
      QuantizeOptions options;
      options.mode = mode;
      options.bias_correction = corrects;
      const Quantizer quantizer(model, options);
      const QuantizationPlan bound = quantizer.plan();
      const QuantizationPlan exact = quantizer.plan(&calibration);
      const int64_t before = budget->used();
      budget->reset_peak();
      const auto file = quantizer.quantize(&calibration, &means);
      EXPECT_EQ(exact.result_bytes, static_cast<int64_t>(file.size())) << corrects;
      EXPECT_EQ(exact.peak_bytes, budget->peak() - before) << corrects;
      EXPECT_GE(bound.result_bytes, exact.result_bytes) << corrects;
      EXPECT_GE(bound.peak_bytes, exact.peak_bytes) << corrects;
    }
  }
}

}  // namespace
}  // namespace leadline
