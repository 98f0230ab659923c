// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "io/flexbuffer_map_builder.h"
#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

void expect_near(const std::vector<float>& got, const std::vector<float>& expected, float tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], tolerance) << i;
}

OpTester spectrogram(int32_t window, int32_t stride, bool squared, const Shape& shape, const std::vector<float>& data) {
  OpTester t("AudioSpectrogram");
  t.custom_options(build_flex_map({{"magnitude_squared", squared}, {"stride", stride}, {"window_size", window}}));
  t.input<float>(shape, data, {}, false).output(DType::kFloat32);
  return t;
}

const std::vector<float> kWave = {-1, 0, 1, 0, -1, 0, 1, 0};

// Results of TensorFlow Lite.
TEST(AudioSpectrogram, PowerAndMagnitude) {
  OpTester squared = spectrogram(8, 1, true, {8, 1}, kWave);
  squared.run();
  EXPECT_EQ(squared.shape(0), (Shape{1, 1, 5}));
  expect_near(squared.result<float>(0), {0, 1, 4, 1, 0}, 1e-5F);
  OpTester magnitude = spectrogram(8, 1, false, {8, 1}, kWave);
  magnitude.run();
  expect_near(magnitude.result<float>(0), {0, 1, 2, 1, 0}, 1e-5F);
}

TEST(AudioSpectrogram, WindowsStepAndChannelsStayApart) {
  std::vector<float> two;
  for (size_t i = 0; i < 10; ++i) {
    two.push_back(kWave[i % 4]);
    two.push_back(100);
  }
  OpTester t = spectrogram(8, 2, true, {10, 2}, two);
  t.threads(3).run();
  EXPECT_EQ(t.shape(0), (Shape{2, 2, 5}));
  const auto result = t.result<float>(0);
  expect_near({result.begin(), result.begin() + 10}, {0, 1, 4, 1, 0, 0, 1, 4, 1, 0}, 1e-5F);
  EXPECT_NEAR(result[10], 160000.0F, 1.0F);
}

TEST(AudioSpectrogram, TooFewSamplesGiveNoWindow) {
  OpTester t = spectrogram(INT32_MAX, 1, true, {8, 1}, kWave);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1, 0, (1 << 30) + 1}));
}

TEST(AudioSpectrogram, HostileOptionsAreRefused) {
  EXPECT_THROW(spectrogram(1, 1, true, {8, 1}, kWave).run(), Error);
  EXPECT_THROW(spectrogram(-8, 1, true, {8, 1}, kWave).run(), Error);
  EXPECT_THROW(spectrogram(8, 0, true, {8, 1}, kWave).run(), Error);
  EXPECT_THROW(spectrogram(8, 1, true, {8}, kWave).run(), Error);
}

OpTester mfcc(int32_t upper, int32_t lower, int32_t bands, int32_t coefficients, int32_t rate, int64_t frames = 1) {
  OpTester t("Mfcc");
  t.custom_options(build_flex_map({{"dct_coefficient_count", coefficients},
                                   {"filterbank_channel_count", bands},
                                   {"lower_frequency_limit", lower},
                                   {"upper_frequency_limit", upper}}));
  std::vector<float> spectrum;
  for (int64_t i = 0; i < frames * 513; ++i) spectrum.push_back(static_cast<float>(i % 513 + 1));
  t.input<float>({1, frames, 513}, spectrum, {}, false).input<int32_t>({1}, {rate}, {}, false);
  t.output(DType::kFloat32);
  return t;
}

// Results of TensorFlow Lite.
TEST(Mfcc, CoefficientsOfARamp) {
  const std::vector<float> expected = {29.13970072F, -6.41568601F, -0.61903012F, -0.96778652F, -0.26819878F,
                                       -0.40907028F, -0.15614748F, -0.23203119F, -0.10481487F, -0.1543029F,
                                       -0.0769791F,  -0.10806114F, -0.06047613F};
  OpTester t = mfcc(4000, 20, 40, 13, 22050);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1, 1, 13}));
  expect_near(t.result<float>(0), expected, 1e-3F);
  OpTester many = mfcc(4000, 20, 40, 13, 22050, 5);
  many.threads(4).run();
  const auto result = many.result<float>(0);
  EXPECT_EQ(std::vector<float>(result.end() - 13, result.end()), t.result<float>(0));
}

TEST(Mfcc, LimitsAboveHalfTheRateGiveZeros) {
  OpTester t = mfcc(4000, 20, 40, 13, 4000);
  t.run();
  EXPECT_EQ(t.result<float>(0), std::vector<float>(13));
}

TEST(Mfcc, HostileOptionsAndRatesAreRefused) {
  EXPECT_THROW(mfcc(4000, -1, 40, 13, 22050).run(), Error);
  EXPECT_THROW(mfcc(20, 20, 40, 13, 22050).run(), Error);
  EXPECT_THROW(mfcc(4000, 20, 0, 0, 22050).run(), Error);
  EXPECT_THROW(mfcc(4000, 20, 12, 13, 22050).run(), Error);
  EXPECT_THROW(mfcc(4000, 20, INT32_MAX, INT32_MAX, 22050).run(), Error);
  EXPECT_THROW(mfcc(4000, 20, 40, 13, 0).run(), Error);
  EXPECT_THROW(mfcc(4000, 20, 40, 13, INT32_MIN).run(), Error);
}

}  // namespace
}  // namespace leadline::ops
