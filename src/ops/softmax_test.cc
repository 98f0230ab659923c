// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

SoftmaxAttributes beta(float value) {
  SoftmaxAttributes a;
  a.beta = value;
  return a;
}

TEST(Softmax, FloatRowsOfTheLastDimension) {
  OpTester t("SOFTMAX");
  t.attributes(beta(1.0F)).input<float>({2, 2}, {0, 0, 0, 1}).output(DType::kFloat32);
  t.run();
  const auto got = t.result<float>(0);
  EXPECT_FLOAT_EQ(got[0], 0.5F);
  EXPECT_FLOAT_EQ(got[3], 1.0F / (1.0F + std::exp(-1.0F)));
}

/// Softmax of reals {0, scale, 2 scale, ...} against a quantized result.
template <typename T>
void expect_close(const std::vector<T>& got, float scale, double out_scale, int out_zero, double tolerance) {
  double sum = 0.0;
  for (size_t i = 0; i < got.size(); ++i) sum += std::exp(static_cast<double>(scale) * static_cast<double>(i));
  for (size_t i = 0; i < got.size(); ++i) {
    const double p = std::exp(static_cast<double>(scale) * static_cast<double>(i)) / sum;
    EXPECT_NEAR(got[i], p / out_scale + out_zero, tolerance) << i;
  }
}

TEST(Softmax, EightBits) {
  OpTester s("SOFTMAX");
  s.attributes(beta(1.0F)).input<int8_t>({5}, {-128, -127, -126, -125, -124}, quantized(0.3F, 5));
  s.output(DType::kInt8, quantized(1.0F / 256, -128));
  s.run();
  expect_close(s.result<int8_t>(0), 0.3F, 1.0 / 256, -128, 0.51);
  OpTester u("SOFTMAX");
  u.attributes(beta(1.0F)).input<uint8_t>({5}, {0, 1, 2, 3, 4}, quantized(0.3F, 5));
  u.output(DType::kUInt8, quantized(1.0F / 256));
  u.run();
  expect_close(u.result<uint8_t>(0), 0.3F, 1.0 / 256, 0, 0.51);
  OpTester wide("SOFTMAX");
  wide.attributes(beta(1.0F)).input<int8_t>({5}, {10, 11, 12, 13, 14}, quantized(0.3F, 5));
  wide.output(DType::kInt16, quantized(1.0F / 65536, -32768));
  wide.run();
  expect_close(wide.result<int16_t>(0), 0.3F, 1.0 / 65536, -32768, 1.0);
}

TEST(Softmax, Int16) {
  OpTester t("SOFTMAX");
  t.attributes(beta(1.0F)).input<int16_t>({5}, {0, 1000, 2000, 3000, 4000}, quantized(0.001F));
  t.output(DType::kInt16, quantized(1.0F / 32768));
  t.run();
  expect_close(t.result<int16_t>(0), 1.0F, 1.0 / 32768, 0, 12);
}

TEST(Softmax, RefusesOutputsOfAnotherScale) {
  OpTester t("SOFTMAX");
  t.attributes(beta(1.0F)).input<int8_t>({1}, {0}, quantized(0.3F)).output(DType::kInt8, quantized(0.1F, -128));
  EXPECT_THROW(t.run(), Error);
  OpTester scalar("SOFTMAX");
  scalar.attributes(beta(1.0F)).input<float>({}, {0}).output(DType::kFloat32);
  EXPECT_THROW(scalar.run(), Error);
}

TEST(Softmax, EmptyRowsAndEmptyTensors) {
  OpTester t("SOFTMAX");
  t.attributes(beta(1.0F)).input<float>({3, 0}, {}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{3, 0}));
}

TEST(LogSoftmax, FloatAndQuantized) {
  OpTester f("LOG_SOFTMAX");
  f.input<float>({1, 3}, {1, 2, 3}).output(DType::kFloat32);
  f.run();
  const double log_sum = std::log(std::exp(-2.0) + std::exp(-1.0) + 1.0);
  EXPECT_NEAR(f.result<float>(0)[0], -2.0 - log_sum, 1e-6);
  OpTester q("LOG_SOFTMAX");
  q.input<int8_t>({1, 3}, {10, 20, 30}, quantized(0.1F)).output(DType::kInt8, quantized(16.0F / 256, 127));
  q.run();
  EXPECT_NEAR(q.result<int8_t>(0)[0], (-2.0 - log_sum) * 16 + 127, 1);
  EXPECT_NEAR(q.result<int8_t>(0)[2], -log_sum * 16 + 127, 1);
}

}  // namespace
}  // namespace leadline::ops
