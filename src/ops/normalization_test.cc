// SPDX-License-Identifier: Apache-2.0
#include "ops/normalization.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

TEST(L2Normalization, FloatVectorsGetLengthOne) {
  OpTester t("L2_NORMALIZATION");
  t.input<float>({2, 2}, {3, 4, 0, 0}).output(DType::kFloat32).run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{0.6F, 0.8F, 0, 0}));
}

// Quantized results and those of the local response are TensorFlow Lite's.
TEST(L2Normalization, QuantizedBitForBit) {
  OpTester bytes("L2_NORMALIZATION");
  bytes.input<int8_t>({3, 4}, {3, -77, 60, 5, 0, 1, 0, 0, -128, 127, -128, 127}, quantized(0.1F, 2));
  bytes.output(DType::kInt8, quantized(1.0F / 128)).run();
  EXPECT_EQ(bytes.result<int8_t>(0), (std::vector<int8_t>{1, -103, 76, 4, -71, -36, -71, -71, -65, 63, -65, 63}));
  OpTester unsigned_bytes("L2_NORMALIZATION");
  unsigned_bytes.input<uint8_t>({3, 4}, {131, 51, 188, 133, 128, 129, 128, 128, 0, 255, 0, 255}, quantized(0.1F, 130));
  unsigned_bytes.output(DType::kUInt8, quantized(1.0F / 128, 128)).run();
  EXPECT_EQ(unsigned_bytes.result<uint8_t>(0),
            (std::vector<uint8_t>{129, 25, 204, 132, 57, 92, 57, 57, 63, 191, 63, 191}));
}

TEST(L2Normalization, OtherOutputScalesAreRefused) {
  OpTester t("L2_NORMALIZATION");
  t.input<int8_t>({1}, {3}, quantized(0.1F)).output(DType::kInt8, quantized(0.01F));
  EXPECT_THROW(t.run(), Error);
}

TEST(LocalResponseNormalization, NeighboursWithinTheRadiusCount) {
  LocalResponseAttributes a;
  a.radius = 1;
  a.bias = 2.0F;
  a.alpha = 0.5F;
  a.beta = 0.75F;
  OpTester t("LOCAL_RESPONSE_NORMALIZATION");
  t.attributes(a).input<float>({1, 1, 1, 4}, {1, 2, 3, 4}).output(DType::kFloat32).run();
  const std::vector<float> expected = {0.3236612F, 0.3849002F, 0.3664446F, 0.5383119F};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(t.result<float>(0)[i], expected[i], 1e-6F);
}

}  // namespace
}  // namespace leadline::ops
