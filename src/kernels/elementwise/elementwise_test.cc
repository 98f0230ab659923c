// SPDX-License-Identifier: Apache-2.0
// The vectorised rows against <cmath> and the scalar definitions, at every length around a vector's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/elementwise/binary_f32.h"
#include "kernels/elementwise/half.h"
#include "kernels/elementwise/lut.h"
#include "kernels/elementwise/quantized.h"
#include "kernels/elementwise/sigmoid_i16.h"
#include "kernels/elementwise/softmax_f32.h"
#include "kernels/elementwise/unary_f32.h"

namespace leadline::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(BinaryF32, EveryLengthAndStepAgreesWithTheScalarOp) {
  const auto row = binary_row_f32(BinaryF32::kSub);
  for (int64_t count = 1; count < 75; ++count) {
    std::vector<float> a(static_cast<size_t>(count));
    std::vector<float> b(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      a[static_cast<size_t>(i)] = static_cast<float>(i * i % 17) - 8.0F;
      b[static_cast<size_t>(i)] = static_cast<float>(i % 5);
    }
    for (const auto& [a_step, b_step] : {std::pair{1, 1}, std::pair{0, 1}, std::pair{1, 0}}) {
      std::vector<float> out(a.size());
      row(a.data(), a_step, b.data(), b_step, out.data(), count, -3.0F, 6.0F);
      for (int64_t i = 0; i < count; ++i) {
        const float x = a[static_cast<size_t>(i * a_step)] - b[static_cast<size_t>(i * b_step)];
        EXPECT_EQ(out[static_cast<size_t>(i)], std::clamp(x, -3.0F, 6.0F));
      }
    }
  }
}

TEST(BinaryF32, MayOverwriteAnOperand) {
  std::vector<float> a = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  std::vector<float> b = a;
  binary_row_f32(BinaryF32::kMul)(a.data(), 1, b.data(), 1, b.data(), 11, -kInf, kInf);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(b[i], a[i] * a[i]);
}

TEST(BinaryF32, NanPassesTheClamp) {
  const float a[] = {kNan, 1.0F};
  const float b[] = {1.0F, kInf};
  float out[2];
  binary_row_f32(BinaryF32::kAdd)(a, 1, b, 1, out, 2, 0.0F, 6.0F);
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], 6.0F);
}

/// Largest |got - want| / max(|want|, floor).
template <typename F>
double worst(UnaryF32 op, float from, float to, double floor, const F& want) {
  std::vector<float> in;
  for (int i = 0; i <= 20001; ++i) in.push_back(from + (to - from) * static_cast<float>(i) / 20001.0F);
  std::vector<float> out(in.size());
  unary_row_f32(op)(in.data(), out.data(), static_cast<int64_t>(in.size()), 0.0F, 0.0F);
  double most = 0.0;
  for (size_t i = 0; i < in.size(); ++i) {
    const double exact = want(static_cast<double>(in[i]));
    most = std::max(most, std::abs(out[i] - exact) / std::max(std::abs(exact), floor));
  }
  return most;
}

TEST(UnaryF32, FunctionsAreAccurate) {
  EXPECT_LT(worst(UnaryF32::kExp, -80, 80, 1e-37, [](double x) { return std::exp(x); }), 3e-7);
  EXPECT_LT(worst(UnaryF32::kTanh, -12, 12, 1e-30, [](double x) { return std::tanh(x); }), 5e-7);
  EXPECT_LT(worst(UnaryF32::kTanh, -0.3F, 0.3F, 1e-30, [](double x) { return std::tanh(x); }), 5e-7);
  EXPECT_LT(worst(UnaryF32::kLogistic, -80, 80, 1e-30, [](double x) { return 1 / (1 + std::exp(-x)); }), 5e-7);
  EXPECT_LT(worst(UnaryF32::kSwish, -80, 80, 1e-3, [](double x) { return x / (1 + std::exp(-x)); }), 7e-7);
  EXPECT_LT(worst(UnaryF32::kElu, -20, 5, 1e-30, [](double x) { return x < 0 ? std::expm1(x) : x; }), 1e-6);
  EXPECT_LT(worst(UnaryF32::kGelu, -9, 9, 1e-2, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }),
            3e-5);
  EXPECT_LT(worst(UnaryF32::kGeluTanh, -9, 9, 1e-6,
                  [](double x) { return 0.5 * x * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x))); }),
            2e-5);
  EXPECT_LT(worst(UnaryF32::kHardSwish, -6, 6, 1e-6, [](double x) { return x * std::clamp(x + 3.0, 0.0, 6.0) / 6.0; }),
            1e-6);
  EXPECT_LT(worst(UnaryF32::kRsqrt, 1e-3F, 100, 1e-6, [](double x) { return 1 / std::sqrt(x); }), 3e-7);
}

std::vector<float> apply(UnaryF32 op, std::vector<float> values, float p0 = 0.0F, float p1 = 0.0F) {
  unary_row_f32(op)(values.data(), values.data(), static_cast<int64_t>(values.size()), p0, p1);
  return values;
}

TEST(UnaryF32, SpecialValues) {
  const std::vector<float> exp = apply(UnaryF32::kExp, {-kInf, kInf, 200.0F, kNan, 0.0F});
  EXPECT_EQ(exp[0], 0.0F);
  EXPECT_EQ(exp[1], kInf);
  EXPECT_EQ(exp[2], kInf);
  EXPECT_TRUE(std::isnan(exp[3]));
  EXPECT_EQ(exp[4], 1.0F);
  EXPECT_EQ(apply(UnaryF32::kLogistic, {-kInf, kInf, 0.0F}), (std::vector<float>{0.0F, 1.0F, 0.5F}));
  EXPECT_EQ(apply(UnaryF32::kTanh, {-kInf, kInf, 0.0F}), (std::vector<float>{-1.0F, 1.0F, 0.0F}));
  EXPECT_EQ(apply(UnaryF32::kGelu, {-kInf, kInf}), (std::vector<float>{0.0F, kInf}));
  EXPECT_EQ(apply(UnaryF32::kGeluTanh, {-kInf, kInf}), (std::vector<float>{0.0F, kInf}));
  EXPECT_EQ(apply(UnaryF32::kElu, {-kInf, kInf}), (std::vector<float>{-1.0F, kInf}));
  for (const UnaryF32 op : {UnaryF32::kLogistic, UnaryF32::kTanh, UnaryF32::kClamp, UnaryF32::kGelu}) {
    EXPECT_TRUE(std::isnan(apply(op, {kNan}, 0.0F, 6.0F)[0]));
  }
  EXPECT_EQ(apply(UnaryF32::kRound, {0.5F, 1.5F, 2.5F, -0.5F, -1.5F}), (std::vector<float>{0, 2, 2, -0.0F, -2}));
  EXPECT_EQ(apply(UnaryF32::kSign, {-3.0F, 0.0F, 7.0F}), (std::vector<float>{-1, 0, 1}));
}

TEST(UnaryF32, ResultDoesNotDependOnThePlaceInTheRow) {
  std::vector<float> in;
  for (int i = 0; i < 64; ++i) in.push_back(static_cast<float>(i) * 0.37F - 11.0F);
  for (const UnaryF32 op : {UnaryF32::kLogistic, UnaryF32::kTanh, UnaryF32::kExp, UnaryF32::kGelu}) {
    const std::vector<float> whole = apply(op, in);
    for (size_t i = 0; i < in.size(); ++i) EXPECT_EQ(apply(op, {in[i]})[0], whole[i]);
  }
}

TEST(SoftmaxF32, EveryLengthSumsToOneAndAgrees) {
  for (int64_t count = 1; count < 70; ++count) {
    std::vector<float> in;
    for (int64_t i = 0; i < count; ++i) in.push_back(static_cast<float>(i * 7 % 11) * 1.5F - 4.0F);
    const float most = *std::max_element(in.begin(), in.end());
    double sum = 0.0;
    for (const float x : in) sum += std::exp(0.7 * (x - most));
    std::vector<float> out(in.size());
    softmax_f32().row(in.data(), out.data(), count, 0.7F);
    std::vector<float> logs = in;
    softmax_f32().log_row(logs.data(), logs.data(), count, 1.0F);
    double log_sum = 0.0;
    for (const float x : in) log_sum += std::exp(static_cast<double>(x - most));
    for (size_t i = 0; i < in.size(); ++i) {
      EXPECT_NEAR(out[i], std::exp(0.7 * (in[i] - most)) / sum, 1e-6);
      EXPECT_NEAR(logs[i], in[i] - most - std::log(log_sum), 2e-6);
    }
  }
}

TEST(SoftmaxF32, MaskedElementsGetNothing) {
  std::vector<float> v = {1.0F, -kInf, 1.0F};
  softmax_f32().row(v.data(), v.data(), 3, 1.0F);
  EXPECT_EQ(v, (std::vector<float>{0.5F, 0.0F, 0.5F}));
}

template <typename T>
void check_quantized_rows() {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> value(std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  std::uniform_real_distribution<double> exponent(-6.0, 3.0);
  for (int round = 0; round < 200; ++round) {
    QuantizedAdd add;
    // int16 has no zero points.
    constexpr bool kBytes = sizeof(T) == 1;
    add.a_zero_point = kBytes ? value(random) : 0;
    add.b_zero_point = kBytes ? value(random) : 0;
    add.zero_point = kBytes ? value(random) : 0;
    add.left_shift = kBytes ? 20 : 15;
    add.a = quantize_multiplier(0.5);
    add.b = quantize_multiplier(0.5 * std::exp(-std::abs(exponent(random))));
    add.output = quantize_multiplier(std::exp(exponent(random)) / (1 << add.left_shift));
    add.subtract = round % 2 == 1;
    add.lo = std::numeric_limits<T>::min() + round % 3;
    add.hi = std::numeric_limits<T>::max() - round % 5;
    QuantizedMul mul{add.a_zero_point, add.b_zero_point,
                     add.zero_point,   quantize_multiplier(std::exp(exponent(random) - (kBytes ? 4.0 : 10.0))),
                     add.lo,           add.hi};
    const int64_t count = 1 + round % 40;
    std::vector<T> a;
    std::vector<T> b;
    for (int64_t i = 0; i < count; ++i) {
      a.push_back(static_cast<T>(value(random)));
      b.push_back(static_cast<T>(value(random)));
    }
    // The products that are largest.
    a.front() = b.front() = std::numeric_limits<T>::min();
    for (const auto& [a_step, b_step] : {std::pair{1, 1}, std::pair{0, 1}, std::pair{1, 0}}) {
      std::vector<T> sums(a.size());
      std::vector<T> products(a.size());
      quantized_row<T, QuantizedAdd>()(add, a.data(), a_step, b.data(), b_step, sums.data(), count);
      quantized_row<T, QuantizedMul>()(mul, a.data(), a_step, b.data(), b_step, products.data(), count);
      for (int64_t i = 0; i < count; ++i) {
        const T x = a[static_cast<size_t>(i * a_step)];
        const T y = b[static_cast<size_t>(i * b_step)];
        ASSERT_EQ(int{sums[static_cast<size_t>(i)]}, add(x, y)) << round;
        ASSERT_EQ(int{products[static_cast<size_t>(i)]}, mul(x, y)) << round;
      }
    }
  }
}

TEST(QuantizedRows, AreBitForBitTheScalarDefinition) {
  check_quantized_rows<int8_t>();
  check_quantized_rows<uint8_t>();
  check_quantized_rows<int16_t>();
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(static_cast<float>(Half(1.0F + 0x1p-11F)), 1.0F);
  EXPECT_EQ(static_cast<float>(Half(1.0F + 3 * 0x1p-11F)), 1.0F + 0x1p-9F);
  EXPECT_EQ(static_cast<float>(Half(65519.0F)), 65504.0F);
  EXPECT_EQ(static_cast<float>(Half(65520.0F)), kInf);
  EXPECT_EQ(static_cast<float>(Half(0x1p-24F)), 0x1p-24F);
  EXPECT_EQ(static_cast<float>(Half(0x1p-25F)), 0.0F);
  EXPECT_EQ(static_cast<float>(Half(-0x1.8p-25F)), -0x1p-24F);
  EXPECT_TRUE(std::isnan(static_cast<float>(Half(kNan))));
  EXPECT_EQ(static_cast<float>(BFloat16(1.0F + 0x1p-8F)), 1.0F);
  EXPECT_EQ(static_cast<float>(BFloat16(1.0F + 3 * 0x1p-8F)), 1.0F + 0x1p-6F);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(kNan))));
}

TEST(Half, EveryValueSurvivesTheTrip) {
  for (uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const auto half = std::bit_cast<Half>(static_cast<uint16_t>(bits));
    if (std::isnan(static_cast<float>(half))) continue;
    ASSERT_EQ(std::bit_cast<uint16_t>(Half(static_cast<float>(half))), bits);
  }
}

TEST(Lut16, InterpolatesWithinAFewSteps) {
  const Lut16 lut = make_lut16<float>(1.0F / 4096.0F, 0, 1.0F / 32768.0F, 0, [](float x) { return std::tanh(x); });
  for (int v = -32768; v <= 32767; v += 7) {
    const double want = std::tanh(v / 4096.0) * 32768.0;
    EXPECT_NEAR(lookup16(static_cast<int16_t>(v), lut), want, 10.0);
  }
}

TEST(SigmoidI16, IsCloseToTheFunctionAtAnyScale) {
  for (const float scale : {1.0F / 4096.0F, 1.0F / 2048.0F, 0.0003F, 0.01F, 5.0F}) {
    const SigmoidI16 sigmoid(scale);
    for (int v = -32768; v <= 32767; v += 11) {
      const double x = static_cast<double>(v) * scale;
      EXPECT_NEAR(sigmoid.logistic(static_cast<int16_t>(v)), 32768.0 / (1.0 + std::exp(-x)), 5.0) << scale << " " << v;
      EXPECT_NEAR(sigmoid.tanh(static_cast<int16_t>(v)), 32768.0 * std::tanh(x), 12.0) << scale << " " << v;
    }
  }
}

}  // namespace
}  // namespace leadline::kernels
