// SPDX-License-Identifier: Apache-2.0
#include "quantize/parameters.h"

#include <gtest/gtest.h>

namespace leadline::quantize {
namespace {

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

TEST(Parameters, ABiasThatWouldOverflowWidensTheScaleOfItsWeights) {
  std::vector<float> weights = {1e-6F, 1e-6F};
  const float bias[] = {1e-3F, 1e6F};
  const std::vector<float> scales = bias_scales(1e-5F, weights, bias);
  EXPECT_FLOAT_EQ(scales[0], 1e-11F);
  EXPECT_FLOAT_EQ(weights[0], 1e-6F);
  EXPECT_LE(1e6 / static_cast<double>(scales[1]), 0x1p30);
  EXPECT_FLOAT_EQ(weights[1] * 1e-5F, scales[1]);
}

}  // namespace
}  // namespace leadline::quantize
