// SPDX-License-Identifier: Apache-2.0
#include "ops/fully_connected.h"

#include <gtest/gtest.h>

#include "kernels/quant/dynamic.h"
#include "kernels/reference/matmul.h"
#include "ops/contraction_testing.h"
#include "ops/loops/quantize_rows.h"

namespace leadline::ops {
namespace {

using kernels::reference::MatmulShape;
constexpr float kInf = std::numeric_limits<float>::infinity();

MatmulShape shape_of(int64_t m, int64_t k, int64_t n) {
  return {.m = m, .n = n, .k = k, .a_row = k, .b_column = k, .c_row = n};
}

TEST(FullyConnected, AddsBiasAndClampsToTheActivation) {
  OpTester t("FULLY_CONNECTED");
  FullyConnectedAttributes a;
  a.activation = ir::Activation::kRelu;
  t.attributes(a).input<float>({2, 3}, {1, 2, 3, -1, -2, -3}, {}, false);
  t.input<float>({2, 3}, {1, 0, -1, 0.5, 0.5, 0.5}).input<float>({2}, {1, -1}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 2}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{0, 2, 3, 0}));
}

TEST(FullyConnected, KeepsTheOuterDimensionsWhenAsked) {
  for (const bool keep : {false, true}) {
    OpTester t("FULLY_CONNECTED");
    FullyConnectedAttributes a;
    a.keep_num_dims = keep;
    t.attributes(a).input<float>({2, 2, 3}, random_values<float>(12, 1), {}, false);
    t.input<float>({5, 3}, random_values<float>(15, 2)).absent_input().output(DType::kFloat32);
    t.run();
    EXPECT_EQ(t.shape(0), keep ? (Shape{2, 2, 5}) : (Shape{4, 5}));
  }
}

TEST(FullyConnected, FlattensAnyInputToRows) {
  OpTester t("FULLY_CONNECTED");
  t.input<float>({1, 2, 2, 1}, {1, 2, 3, 4}, {}, false)
      .input<float>({1, 4}, {1, 10, 100, 1000})
      .output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1, 1}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{4321}));
}

// Half of the products 1, 3, 5, -5 lies between two levels each time; the even one wins, then -3 is added.
TEST(FullyConnected, RoundsQuantizedTiesToEven) {
  OpTester t("FULLY_CONNECTED");
  t.input<int8_t>({1, 1}, {2}, quantized(1.0F, 1), false);
  t.input<int8_t>({4, 1}, {1, 3, 5, -5}, quantized(0.5F)).output(DType::kInt8, quantized(1.0F, -3));
  t.run();
  EXPECT_EQ(t.result<int8_t>(0), (std::vector<int8_t>{-3, -1, -1, -5}));  // 0.5, 1.5, 2.5, -2.5 above -3
}

class FullyConnectedSizes : public testing::TestWithParam<std::tuple<int64_t, int64_t, int64_t, int>> {};

TEST_P(FullyConnectedSizes, Int8MatchesTheNaiveLoop) {
  const auto [m, k, n, threads] = GetParam();
  const auto input = random_values<int8_t>(m * k, 1, -128, 127);
  const auto weights = random_values<int8_t>(n * k, 2, -127, 127);
  const auto bias = random_values<int32_t>(n, 3, -5000, 5000);
  const Quantization wq = channel_quantized(n, 0, 0.01F);
  OpTester t("FULLY_CONNECTED");
  t.threads(threads).input<int8_t>({m, k}, input, quantized(0.05F, -7), false).input<int8_t>({n, k}, weights, wq);
  t.input<int32_t>({n}, bias).output(DType::kInt8, quantized(0.4F, 5));
  t.run();
  std::vector<float> scales;
  for (const float s : wq.scale) scales.push_back(0.05F * s / 0.4F);
  const kernels::reference::FinishQuantized<int8_t> finish{bias.data(), scales.data(), 5, -128, 127};
  std::vector<int8_t> expected(static_cast<size_t>(m * n));
  reference_product(shape_of(m, k, n), input.data(), kernels::reference::FixedZero{-7}, weights.data(), 0, finish,
                    expected.data());
  EXPECT_EQ(t.result<int8_t>(0), expected);
}

TEST_P(FullyConnectedSizes, Uint8WithAsymmetricWeightsMatchesTheNaiveLoop) {
  const auto [m, k, n, threads] = GetParam();
  const auto input = random_values<uint8_t>(m * k, 1, 0, 255);
  const auto weights = random_values<uint8_t>(n * k, 2, 0, 255);
  OpTester t("FULLY_CONNECTED");
  t.threads(threads).input<uint8_t>({m, k}, input, quantized(0.05F, 120), false);
  t.input<uint8_t>({n, k}, weights, quantized(0.02F, 131)).output(DType::kUInt8, quantized(0.7F, 100));
  t.run();
  const float scale = 0.05F * 0.02F / 0.7F;
  const kernels::reference::FinishQuantized<uint8_t> finish{nullptr, &scale, 100, 0, 255, 0};
  std::vector<uint8_t> expected(static_cast<size_t>(m * n));
  reference_product(shape_of(m, k, n), input.data(), kernels::reference::FixedZero{120}, weights.data(), 131, finish,
                    expected.data());
  EXPECT_EQ(t.result<uint8_t>(0), expected);
}

TEST_P(FullyConnectedSizes, FloatMatchesTheNaiveLoop) {
  const auto [m, k, n, threads] = GetParam();
  const auto input = random_values<float>(m * k, 1);
  const auto weights = random_values<float>(n * k, 2);
  const auto bias = random_values<float>(n, 3);
  for (const bool half : {false, true}) {
    OpTester t("FULLY_CONNECTED");
    t.threads(threads).input<float>({m, k}, input, {}, false);
    half ? t.raw_input(DType::kFloat16, {n, k}, half_bytes(weights)) : t.input<float>({n, k}, weights);
    t.input<float>({n}, bias).output(DType::kFloat32);
    t.run();
    std::vector<float> expected(static_cast<size_t>(m * n));
    reference_product(shape_of(m, k, n), input.data(), kernels::reference::FixedZero{}, weights.data(), 0,
                      kernels::reference::FinishFloat{bias.data(), -kInf, kInf}, expected.data());
    const auto result = t.result<float>(0);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(result[i], expected[i], half ? 4e-3F : 1e-4F) << i;
  }
}

TEST_P(FullyConnectedSizes, DynamicRangeMatchesTheNaiveLoop) {
  const auto [m, k, n, threads] = GetParam();
  const auto input = random_values<float>(m * k, 1);
  const Quantization wq = channel_quantized(n, 0, 0.01F);
  for (const int bits : {8, 4, 2}) {
    const auto weights = random_values<int8_t>(n * k, 2, -(1 << (bits - 1)), (1 << (bits - 1)) - 1);
    const DType type = bits == 8 ? DType::kInt8 : (bits == 4 ? DType::kInt4 : DType::kInt2);
    OpTester t("FULLY_CONNECTED");
    t.threads(threads).input<float>({m, k}, input, {}, false);
    t.raw_input(type, {n, k}, bits == 8 ? bytes_of(weights) : packed_bytes(weights, bits), wq).output(DType::kFloat32);
    t.run();
    std::vector<int8_t> quantized(input.size());
    std::vector<float> scales(static_cast<size_t>(m));
    std::vector<int32_t> zeros(static_cast<size_t>(m));
    ThreadPool pool(1);
    // XNNPACK takes rows of whole bytes only.
    const auto rule = k % (8 / bits) == 0 ? kernels::RowRule::kXnnpack : kernels::RowRule::kTfliteSymmetric;
    quantize_rows(input.data(), m, k, quantized.data(), {scales.data(), zeros.data()}, pool, rule);
    const kernels::reference::FinishHybrid finish{scales.data(), wq.scale.data(), nullptr, -kInf, kInf};
    std::vector<float> expected(static_cast<size_t>(m * n));
    reference_product(shape_of(m, k, n), quantized.data(), kernels::reference::RowZero{zeros.data()}, weights.data(), 0,
                      finish, expected.data());
    const auto result = t.result<float>(0);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(result[i], expected[i], 1e-4F) << i;
    // And it stands for the product of the real numbers: half a step of the input times the weights.
    std::vector<float> real(weights.begin(), weights.end());
    for (int64_t i = 0; i < n * k; ++i) real[static_cast<size_t>(i)] *= wq.scale[static_cast<size_t>(i / k)];
    reference_product(shape_of(m, k, n), input.data(), kernels::reference::FixedZero{}, real.data(), 0,
                      kernels::reference::FinishFloat{nullptr, -kInf, kInf}, expected.data());
    float bound = 0;
    for (const float w : real) bound = std::max(bound, std::abs(w));
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(result[i], expected[i], bound * 0.5F * 2.0F / 254.0F * static_cast<float>(k)) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, FullyConnectedSizes,
                         testing::Values(std::tuple{1, 1, 1, 1}, std::tuple{1, 64, 10, 2}, std::tuple{3, 17, 5, 1},
                                         std::tuple{7, 33, 40, 2}, std::tuple{130, 70, 65, 2},
                                         std::tuple{1, 300, 300, 2}));

TEST(FullyConnected, RowsOfDynamicRangeDoNotDependOnHowManyThereAre) {
  constexpr int64_t kM = 50, kK = 100'000, kN = 3;  // more than are quantized at once
  constexpr int64_t kLast = 7;
  const auto input = random_values<float>(kM * kK, 1);
  const auto weights = random_values<int8_t>(kN * kK, 2, -127, 127);
  const auto run = [&](int64_t rows) {
    OpTester t("FULLY_CONNECTED");
    t.threads(2).input<float>({rows, kK}, std::vector<float>(input.end() - rows * kK, input.end()), {}, false);
    t.input<int8_t>({kN, kK}, weights, quantized(0.01F)).output(DType::kFloat32).run();
    const auto result = t.result<float>(0);
    return std::vector<float>(result.end() - kLast * kN, result.end());
  };
  EXPECT_EQ(run(kM), run(kLast));
}

TEST(FullyConnected, WeightsComputedAtRunTimeGiveTheSameResult) {
  // Rows of an odd number of int4 weights round the activations in the same way in both cases.
  const auto input = random_values<float>(3 * 21, 1);
  const auto weights = random_values<int8_t>(9 * 21, 2, -8, 7);
  std::vector<std::vector<float>> results;
  for (const bool known : {true, false}) {
    OpTester t("FULLY_CONNECTED");
    t.input<float>({3, 21}, input, {}, false);
    t.raw_input(DType::kInt4, {9, 21}, packed_bytes(weights, 4), quantized(0.1F), known).output(DType::kFloat32);
    t.run();
    results.push_back(t.result<float>(0));
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(FullyConnected, Int16ActivationsUseFixedPoint) {
  // 1000 * 3 + 2000 * -4 + bias 7 = -4993; times 0.5 * 0.25 / 1.0 = -624.125.
  for (const bool wide : {false, true}) {
    OpTester t("FULLY_CONNECTED");
    t.input<int16_t>({1, 2}, {1000, 2000}, quantized(0.5F), false).input<int8_t>({1, 2}, {3, -4}, quantized(0.25F));
    wide ? t.input<int64_t>({1}, {7}, quantized(0.125F)) : t.input<int32_t>({1}, {7}, quantized(0.125F));
    t.output(DType::kInt16, quantized(1.0F));
    t.run();
    EXPECT_EQ(t.result<int16_t>(0), (std::vector<int16_t>{-624}));
  }
}

TEST(FullyConnected, Int16WeightsMultiplyInt16) {
  OpTester t("FULLY_CONNECTED");
  t.input<int16_t>({1, 2}, {30000, 30000}, quantized(0.5F), false);
  t.input<int16_t>({1, 2}, {32000, 32000}, quantized(0.25F)).output(DType::kInt16, quantized(20000.0F));
  t.run();
  EXPECT_EQ(t.result<int16_t>(0), (std::vector<int16_t>{12000}));
}

TEST(FullyConnected, NothingToSumGivesZeros) {
  OpTester t("FULLY_CONNECTED");
  t.input<float>({2, 0}, {}, {}, false).input<float>({3, 0}, {}).input<float>({3}, {1, 2, 3}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{2, 3}));
  EXPECT_EQ(t.result<float>(0), std::vector<float>(6, 0.0F));
}

TEST(FullyConnected, AnEmptyBatchGivesAnEmptyOutput) {
  OpTester t("FULLY_CONNECTED");
  t.input<float>({0, 4}, {}, {}, false).input<int8_t>({3, 4}, random_values<int8_t>(12, 1), quantized(0.1F));
  t.output(DType::kFloat32).run();
  EXPECT_EQ(t.shape(0), (Shape{0, 3}));
}

TEST(FullyConnected, RefusesOperandsThatDoNotFit) {
  OpTester rows("FULLY_CONNECTED");
  rows.input<float>({1, 5}, random_values<float>(5, 1)).input<float>({2, 3}, random_values<float>(6, 2));
  rows.output(DType::kFloat32);
  expect_refused(rows, "expected a multiple of 3 values");
  OpTester bias("FULLY_CONNECTED");
  bias.input<float>({1, 3}, {1, 2, 3}).input<float>({2, 3}, random_values<float>(6, 2)).input<float>({3}, {1, 2, 3});
  bias.output(DType::kFloat32);
  expect_refused(bias, "has 3 values, expected 2");
  OpTester scale("FULLY_CONNECTED");
  scale.input<float>({1, 3}, {1, 2, 3}).input<int8_t>({2, 3}, {1, 2, 3, 4, 5, 6}).output(DType::kFloat32);
  expect_refused(scale, "have no scale");
  OpTester axis("FULLY_CONNECTED");
  axis.input<int8_t>({1, 3}, {1, 2, 3}, quantized(1.0F));
  axis.input<int8_t>({2, 3}, {1, 2, 3, 4, 5, 6}, channel_quantized(3, 1, 1.0F)).output(DType::kInt8, quantized(1.0F));
  expect_refused(axis, "3 scales along axis 1, expected 2 along axis 0");
  OpTester rank("FULLY_CONNECTED");
  rank.input<float>({1, 3}, {1, 2, 3}).input<float>({6}, random_values<float>(6, 2)).output(DType::kFloat32);
  expect_refused(rank, "expected [units, depth]");
}

}  // namespace
}  // namespace leadline::ops
