// SPDX-License-Identifier: Apache-2.0
#include "ops/activation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

template <typename T>
std::vector<T> run_unary(const char* op, const std::vector<T>& in, Quantization qi = {}, Quantization qo = {}) {
  OpTester t(op);
  t.input<T>({static_cast<int64_t>(in.size())}, in, std::move(qi)).output(dtype_of<T>(), std::move(qo));
  t.run();
  return t.result<T>(0);
}

TEST(Relu, FloatRanges) {
  const std::vector<float> in = {-7, -0.5F, 0.5F, 3, 9};
  EXPECT_EQ(run_unary("RELU", in), (std::vector<float>{0, 0, 0.5F, 3, 9}));
  EXPECT_EQ(run_unary("RELU6", in), (std::vector<float>{0, 0, 0.5F, 3, 6}));
  EXPECT_EQ(run_unary("RELU_N1_TO_1", in), (std::vector<float>{-1, -0.5F, 0.5F, 1, 1}));
  EXPECT_EQ(run_unary("RELU_0_TO_1", in), (std::vector<float>{0, 0, 0.5F, 1, 1}));
}

TEST(Relu, QuantizedRescales) {
  EXPECT_EQ(run_unary<int8_t>("RELU6", {-128, 0, 20, 127}, quantized(0.1F, 0), quantized(0.05F, -128)),
            (std::vector<int8_t>{-128, -128, -88, -8}));
  EXPECT_EQ(run_unary<int16_t>("RELU", {-5, 100}, quantized(0.5F), quantized(0.25F)), (std::vector<int16_t>{0, 200}));
}

TEST(Relu, Int16NeedsZeroPointZero) {
  EXPECT_THROW(run_unary<int16_t>("RELU", {1}, quantized(0.5F, 1), quantized(0.25F)), Error);
}

TEST(LeakyRelu, NegativeSlopesWorkQuantizedToo) {
  LeakyReluAttributes attributes;
  attributes.alpha = -0.5F;
  OpTester t("LEAKY_RELU");
  t.attributes(attributes).input<int8_t>({3}, {-100, 0, 100}, quantized(0.1F)).output(DType::kInt8, quantized(0.1F));
  t.run();
  EXPECT_EQ(t.result<int8_t>(0), (std::vector<int8_t>{50, 0, 100}));
}

TEST(LeakyRelu, SlopeMustBeFinite) {
  LeakyReluAttributes attributes;
  attributes.alpha = std::numeric_limits<float>::infinity();
  OpTester t("LEAKY_RELU");
  t.attributes(attributes).input<float>({1}, {1}).output(DType::kFloat32);
  EXPECT_THROW(t.run(), Error);
}

TEST(Prelu, SlopesPerChannel) {
  OpTester t("PRELU");
  t.input<float>({1, 2, 2}, {-1, 2, 3, -4}).input<float>({1, 1, 2}, {0.5F, 0.25F}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{-0.5F, 2, 3, -1}));
}

TEST(Prelu, Int16WithInt8Slopes) {
  OpTester t("PRELU");
  t.input<int16_t>({2}, {-1000, 1000}, quantized(0.01F)).input<int8_t>({1}, {64}, quantized(1.0F / 128));
  t.output(DType::kInt16, quantized(0.01F));
  t.run();
  EXPECT_EQ(t.result<int16_t>(0), (std::vector<int16_t>{-500, 1000}));
}

TEST(Prelu, InputAndSlopesBroadcast) {
  OpTester t("PRELU");
  t.input<float>({2, 1}, {-1, 2}).input<float>({2}, {0.5F, 3}).output(DType::kFloat32).run();
  EXPECT_EQ(t.shape(0), (Shape{2, 2}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{-0.5F, -3, 2, 2}));
}

/// Largest distance in steps between an int8 op and the real function.
template <typename F>
double worst_int8(const char* op, float in_scale, int in_zero, float out_scale, int out_zero, const F& f) {
  std::vector<int8_t> in;
  for (int v = -128; v <= 127; ++v) in.push_back(static_cast<int8_t>(v));
  const auto got = run_unary<int8_t>(op, in, quantized(in_scale, in_zero), quantized(out_scale, out_zero));
  double most = 0.0;
  for (size_t i = 0; i < in.size(); ++i) {
    const double real = f(static_cast<double>(in_scale) * (in[i] - in_zero));
    const double level = std::clamp(real / out_scale + out_zero, -128.0, 127.0);
    most = std::max(most, std::abs(level - got[i]));
  }
  return most;
}

TEST(Activation, QuantizedTablesFollowTheFunctions) {
  EXPECT_LE(worst_int8("LOGISTIC", 0.07F, 3, 1.0F / 256, -128, [](double x) { return 1 / (1 + std::exp(-x)); }), 0.51);
  EXPECT_LE(worst_int8("TANH", 0.03F, -7, 1.0F / 128, 0, [](double x) { return std::tanh(x); }), 0.51);
  EXPECT_LE(worst_int8("ELU", 0.03F, 10, 0.03F, -90, [](double x) { return x < 0 ? std::expm1(x) : x; }), 0.51);
  EXPECT_LE(
      worst_int8("GELU", 0.03F, 0, 0.03F, -110, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }),
      0.51);
  EXPECT_LE(
      worst_int8("HARD_SWISH", 0.05F, 4, 0.04F, -100, [](double x) { return x * std::clamp(x + 3.0, 0.0, 6.0) / 6.0; }),
      1.2);
}

TEST(HardSwish, ScalesOutsideTheFixedPointFormStillWork) {
  EXPECT_LE(
      worst_int8("HARD_SWISH", 8.0F, 0, 0.01F, 0, [](double x) { return x * std::clamp(x + 3.0, 0.0, 6.0) / 6.0; }),
      0.51);
}

TEST(Gelu, ApproximationDiffersFromTheFunction) {
  GeluAttributes approximate;
  approximate.approximate = true;
  OpTester t("GELU");
  t.attributes(approximate).input<float>({1}, {2.0F}).output(DType::kFloat32);
  t.run();
  EXPECT_NEAR(t.result<float>(0)[0], 1.954597694, 1e-6);
  EXPECT_NEAR(run_unary<float>("GELU", {2.0F})[0], 1.954499736, 1e-6);
}

TEST(Logistic, Int16NeedsItsFixedOutputScale) {
  const auto got = run_unary<int16_t>("LOGISTIC", {0, 4096}, quantized(0x1p-12F), quantized(0x1p-15F));
  EXPECT_EQ(got[0], 16384);
  EXPECT_NEAR(got[1], 32768.0 / (1.0 + std::exp(-1.0)), 2);
  EXPECT_THROW(run_unary<int16_t>("LOGISTIC", {0}, quantized(0x1p-12F), quantized(0x1p-14F)), Error);
}

}  // namespace
}  // namespace leadline::ops
