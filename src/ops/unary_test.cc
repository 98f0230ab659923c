// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

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

TEST(Unary, FloatFunctions) {
  EXPECT_EQ(run_unary<float>("ABS", {-1, 2}), (std::vector<float>{1, 2}));
  EXPECT_EQ(run_unary<float>("NEG", {-1, 2}), (std::vector<float>{1, -2}));
  EXPECT_EQ(run_unary<float>("SQRT", {4, 9}), (std::vector<float>{2, 3}));
  EXPECT_EQ(run_unary<float>("RSQRT", {4, 16}), (std::vector<float>{0.5F, 0.25F}));
  EXPECT_EQ(run_unary<float>("SQUARE", {-3}), (std::vector<float>{9}));
  EXPECT_EQ(run_unary<float>("FLOOR", {-1.5F, 1.5F}), (std::vector<float>{-2, 1}));
  EXPECT_EQ(run_unary<float>("CEIL", {-1.5F, 1.5F}), (std::vector<float>{-1, 2}));
  EXPECT_EQ(run_unary<float>("ROUND", {-2.5F, 0.5F, 1.5F}), (std::vector<float>{-2, 0, 2}));
  EXPECT_FLOAT_EQ(run_unary<float>("EXP", {1})[0], std::exp(1.0F));
  EXPECT_FLOAT_EQ(run_unary<float>("LOG", {5})[0], std::log(5.0F));
  EXPECT_FLOAT_EQ(run_unary<float>("SIN", {1e6F})[0], std::sin(1e6F));
  EXPECT_FLOAT_EQ(run_unary<float>("COS", {2})[0], std::cos(2.0F));
}

TEST(Unary, IntegersWrapAtTheSmallestValue) {
  constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(run_unary<int32_t>("ABS", {kMin, -5}), (std::vector<int32_t>{kMin, 5}));
  EXPECT_EQ(run_unary<int32_t>("NEG", {kMin, 5}), (std::vector<int32_t>{kMin, -5}));
  EXPECT_EQ(run_unary<int8_t>("NEG", {-128, 7}), (std::vector<int8_t>{-128, -7}));
}

TEST(Abs, QuantizedRescales) {
  EXPECT_EQ(run_unary<int8_t>("ABS", {-128, -10, 20}, quantized(1.0F, -10), quantized(2.0F, -128)),
            (std::vector<int8_t>{-69, -128, -113}));
  EXPECT_EQ(run_unary<int16_t>("ABS", {-32768, 100}, quantized(1.0F), quantized(1.0F)),
            (std::vector<int16_t>{32767, 100}));
}

TEST(Log, QuantizedValuesWithoutLogarithmAreTheSmallest) {
  const auto got = run_unary<int8_t>("LOG", {-128, -127, 0, 127}, quantized(0.1F, -128), quantized(0.05F, 0));
  EXPECT_EQ(got[0], -128);
  EXPECT_NEAR(got[1], std::log(0.1) / 0.05, 1);
  EXPECT_NEAR(got[2], std::log(12.8) / 0.05, 1);
}

TEST(Exp, Int16FollowsTheTable) {
  const auto got = run_unary<int16_t>("EXP", {-32768, 0, 16384}, quantized(0x1p-14F), quantized(0.0003F));
  EXPECT_NEAR(got[0], std::exp(-2.0) / 0.0003, 2);
  EXPECT_NEAR(got[1], 1.0 / 0.0003, 2);
  EXPECT_NEAR(got[2], std::exp(1.0) / 0.0003, 2);
}

TEST(Sqrt, QuantizedRoundsDownAndRefusesNegatives) {
  EXPECT_EQ(run_unary<int8_t>("SQRT", {-128, -119, -118}, quantized(1.0F, -128), quantized(1.0F, -128)),
            (std::vector<int8_t>{-128, -125, -125}));
  EXPECT_THROW(run_unary<int8_t>("SQRT", {-1}, quantized(1.0F), quantized(1.0F)), Error);
}

TEST(Rsqrt, QuantizedZeroIsTheLargest) {
  const auto got = run_unary<int8_t>("RSQRT", {-100, -96, 0}, quantized(1.0F, -100), quantized(0.01F, -128));
  EXPECT_EQ(got[0], 127);
  EXPECT_EQ(got[1], -78);
  EXPECT_EQ(got[2], -118);
  EXPECT_THROW(run_unary<int8_t>("RSQRT", {-1}, quantized(1.0F), quantized(1.0F)), Error);
}

TEST(Sign, NanStaysNan) {
  EXPECT_EQ(run_unary<int32_t>("SIGN", {-9, 0, 4}), (std::vector<int32_t>{-1, 0, 1}));
  EXPECT_TRUE(std::isnan(run_unary<double>("SIGN", {std::nan("")})[0]));
}

TEST(Unary, ScalarsAndEmptyTensors) {
  OpTester scalar("ABS");
  scalar.input<float>({}, {-3}).output(DType::kFloat32);
  scalar.run();
  EXPECT_EQ(scalar.shape(0).rank(), 0);
  EXPECT_EQ(scalar.result<float>(0)[0], 3.0F);
  OpTester empty("EXP");
  empty.input<float>({0, 4}, {}).output(DType::kFloat32);
  empty.run();
  EXPECT_EQ(empty.shape(0), (Shape{0, 4}));
}

TEST(Unary, MissingScalesAreAnError) {
  EXPECT_THROW(run_unary<int8_t>("EXP", {1}), Error);
  EXPECT_THROW(run_unary<int16_t>("LOG", {1}, quantized(1.0F, 3), quantized(1.0F)), Error);
}

}  // namespace
}  // namespace leadline::ops
