// SPDX-License-Identifier: Apache-2.0
#include "quantize/parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"

namespace leadline::quantize {
namespace {

ir::Source floats(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return ir::owned_source({bytes.begin(), bytes.end()});
}

template <typename T>
std::vector<T> read(const ir::Source& source) {
  const std::vector<std::byte> bytes = ir::read_all(*source);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(Parameters, Int8CoversTheRangeAndZeroExactly) {
  const Parameters p = activation_parameters({-1.0, 3.0}, DType::kInt8);
  EXPECT_FLOAT_EQ(p.scale, 4.0F / 255.0F);
  EXPECT_EQ(p.zero_point, -64);
}

TEST(Parameters, ARangeThatDoesNotHoldZeroIsWidened) {
  EXPECT_EQ(activation_parameters({2.0, 5.0}, DType::kInt8), (Parameters{5.0F / 255.0F, -128}));
  EXPECT_EQ(activation_parameters({-5.0, -2.0}, DType::kInt8), (Parameters{5.0F / 255.0F, 127}));
}

TEST(Parameters, Int16IsSymmetric) {
  EXPECT_EQ(activation_parameters({-1.0, 4.0}, DType::kInt16), (Parameters{4.0F / 32767.0F, 0}));
}

TEST(Parameters, TinyRangesGetAUsableScale) {
  for (const DType type : {DType::kInt8, DType::kInt16}) {
    EXPECT_GT(activation_parameters({0.0, 0.0}, type).scale, 1e-12F);
    const float zeros[] = {0.0F, 0.0F};
    EXPECT_GT(constant_parameters(zeros, type).scale, 1e-12F);
  }
}

TEST(Parameters, WeightsHaveAScaleForEachChannelOfTheirAxis) {
  const float values[] = {1.0F, -2.0F, 3.0F, -4.0F, 5.0F, 6.0F};
  EXPECT_EQ(weight_scales(values, Shape{3, 2}, 0), (std::vector<float>{2.0F / 127, 4.0F / 127, 6.0F / 127}));
  EXPECT_EQ(weight_scales(values, Shape{3, 2}, 1), (std::vector<float>{5.0F / 127, 6.0F / 127}));
  EXPECT_EQ(weight_scales(values, Shape{3, 2}, -1), (std::vector<float>{6.0F / 127}));
}

TEST(Parameters, AChannelOfZerosHasAPositiveScale) {
  const float values[] = {0.0F, 0.0F, 1.0F, 1.0F};
  EXPECT_GT(weight_scales(values, Shape{2, 2}, 0)[0], 0.0F);
}

TEST(Parameters, ABiasThatWouldOverflowWidensTheScaleOfItsWeights) {
  std::vector<float> weights = {1e-6F, 1e-6F};
  const float bias[] = {1e-3F, 1e6F};
  const std::vector<float> scales = bias_scales(1e-5F, weights, bias);
  EXPECT_FLOAT_EQ(scales[0], 1e-11F);
  EXPECT_FLOAT_EQ(weights[0], 1e-6F);
  EXPECT_LE(1e6 / static_cast<double>(scales[1]), 0x1p30);
  EXPECT_FLOAT_EQ(weights[1] * 1e-5F, scales[1]);
}

TEST(QuantizedSource, RoundsHalvesAwayFromZeroAndClamps) {
  const auto source = quantized_source(floats({0.25F, -0.25F, 0.24F, 100.0F, -100.0F}), Shape{5}, DType::kInt8,
                                       symmetric({0.5F}, 0), true);
  EXPECT_EQ(read<int8_t>(source), (std::vector<int8_t>{1, -1, 0, 127, -127}));
  const auto full = quantized_source(floats({-100.0F, 1.0F}), Shape{2}, DType::kInt8, per_tensor({0.5F, 3}), false);
  EXPECT_EQ(read<int8_t>(full), (std::vector<int8_t>{-128, 5}));
}

TEST(QuantizedSource, TakesTheScaleOfEachChannel) {
  const auto source =
      quantized_source(floats({1.0F, 1.0F, 1.0F, 1.0F}), Shape{2, 2}, DType::kInt8, symmetric({0.5F, 0.25F}, 1), true);
  EXPECT_EQ(read<int8_t>(source), (std::vector<int8_t>{2, 4, 2, 4}));
  EXPECT_EQ(ir::extra_bytes(*source), 16);
}

TEST(QuantizedSource, WideIntegersSaturateAndNanIsZero) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto wide =
      quantized_source(floats({1e30F, -1e30F, nan, 2.0F}), Shape{4}, DType::kInt64, symmetric({0.5F}, 0), false);
  EXPECT_EQ(read<int64_t>(wide), (std::vector<int64_t>{INT64_MAX, INT64_MIN, 0, 4}));
  const auto narrow = quantized_source(floats({1e30F, -1e30F}), Shape{2}, DType::kInt32, symmetric({0.5F}, 0), false);
  EXPECT_EQ(read<int32_t>(narrow), (std::vector<int32_t>{INT32_MAX, INT32_MIN}));
}

TEST(QuantizedSource, RefusesScalesThatDoNotFit) {
  EXPECT_THROW(quantized_source(floats({1.0F}), Shape{1}, DType::kInt8, symmetric({1.0F, 2.0F}, 0), true), Error);
  EXPECT_THROW(quantized_source(floats({1.0F}), Shape{2}, DType::kInt8, symmetric({1.0F}, 0), true), Error);
}

}  // namespace
}  // namespace leadline::quantize
