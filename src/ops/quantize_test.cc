// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

Quantization per_channel(std::vector<float> scale, std::vector<int64_t> zero_point, int axis) {
  Quantization q;
  q.scale = std::move(scale);
  q.zero_point = std::move(zero_point);
  q.axis = axis;
  return q;
}

TEST(Quantize, RoundsToNearestSaturatesAndSurvivesNan) {
  const float inf = std::numeric_limits<float>::infinity();
  OpTester t("QUANTIZE");
  t.input<float>({8}, {0.24F, 0.25F, -0.25F, 1e9F, -inf, inf, std::numeric_limits<float>::quiet_NaN(), 0.2499999F});
  t.output(DType::kInt8, quantized(0.5F, 1)).run();
  EXPECT_EQ(t.result<int8_t>(0), (std::vector<int8_t>{1, 2, 0, 127, -128, 127, 127, 1}));
}

TEST(Quantize, PerChannelAlongAMiddleAxis) {
  OpTester t("QUANTIZE");
  t.input<float>({1, 2, 2}, {1, 2, 3, 4}).output(DType::kUInt8, per_channel({1.0F, 0.5F}, {0, 10}, 1)).threads(2).run();
  EXPECT_EQ(t.result<uint8_t>(0), (std::vector<uint8_t>{1, 2, 16, 18}));
}

TEST(Quantize, FourBitsArePackedLowHalfFirst) {
  OpTester t("QUANTIZE");
  t.input<float>({3}, {1, -2, 100}).output(DType::kInt4, quantized(1.0F)).run();
  EXPECT_EQ(t.result<uint8_t>(0), (std::vector<uint8_t>{0xE1, 0x07}));
}

TEST(Quantize, BetweenIntegers) {
  OpTester same("QUANTIZE");
  same.input<uint8_t>({3}, {0, 128, 255}, quantized(0.5F, 128)).output(DType::kInt8, quantized(0.5F, 0)).run();
  EXPECT_EQ(same.result<int8_t>(0), (std::vector<int8_t>{-128, 0, 127}));
  OpTester wider("QUANTIZE");
  wider.input<int8_t>({3}, {-128, 1, 127}, quantized(0.5F, 1)).output(DType::kInt16, quantized(0.001F)).run();
  EXPECT_EQ(wider.result<int16_t>(0), (std::vector<int16_t>{-32768, 0, 32767}));
  OpTester down("QUANTIZE");
  down.input<int32_t>({3}, {std::numeric_limits<int32_t>::min(), 3, std::numeric_limits<int32_t>::max()},
                      quantized(0.5F, 1));
  down.output(DType::kInt8, quantized(1.0F, 2)).run();
  EXPECT_EQ(down.result<int8_t>(0), (std::vector<int8_t>{-128, 3, 127}));
}

TEST(Dequantize, EveryWidth) {
  OpTester bytes("DEQUANTIZE");
  bytes.input<int8_t>({2}, {-128, 3}, quantized(0.5F, 1)).output(DType::kFloat32).run();
  EXPECT_EQ(bytes.result<float>(0), (std::vector<float>{-64.5F, 1.0F}));
  OpTester nibbles("DEQUANTIZE");
  nibbles.raw_input(DType::kInt4, {3}, {std::byte{0x8F}, std::byte{0x07}}, quantized(2.0F));
  nibbles.output(DType::kFloat32).run();
  EXPECT_EQ(nibbles.result<float>(0), (std::vector<float>{-2, -16, 14}));
  OpTester halves("DEQUANTIZE");
  halves.raw_input(DType::kFloat16, {2}, {std::byte{0x00}, std::byte{0x3C}, std::byte{0x00}, std::byte{0xC0}});
  halves.output(DType::kFloat32).run();
  EXPECT_EQ(halves.result<float>(0), (std::vector<float>{1, -2}));
  OpTester channels("DEQUANTIZE");
  channels.input<int8_t>({2, 2}, {1, 2, 3, 4}, per_channel({1.0F, 10.0F}, {0, 1}, 1)).output(DType::kFloat32).run();
  EXPECT_EQ(channels.result<float>(0), (std::vector<float>{1, 10, 3, 30}));
}

TEST(Dequantize, MissingOrUnfittingParametersAreRefused) {
  OpTester none("DEQUANTIZE");
  none.input<int8_t>({2}, {1, 2}).output(DType::kFloat32);
  EXPECT_THROW(none.run(), Error);
  OpTester count("DEQUANTIZE");
  count.input<int8_t>({3}, {1, 2, 3}, per_channel({1.0F, 2.0F}, {0, 0}, 0)).output(DType::kFloat32);
  EXPECT_THROW(count.run(), Error);
  OpTester axis("QUANTIZE");
  axis.input<float>({2}, {1, 2}).output(DType::kInt8, per_channel({1.0F, 2.0F}, {0, 0}, 1));
  EXPECT_THROW(axis.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
