// SPDX-License-Identifier: Apache-2.0
// Conversions of 16-bit floating point.
#include "core/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace leadline {
namespace {

TEST(Half, EveryHalfSurvivesTheWayThroughFloat) {
  for (uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(half_to_float(float_to_half(value))));
    } else {
      ASSERT_EQ(float_to_half(value), half) << bits;
    }
  }
}

TEST(Half, KnownValues) {
  EXPECT_EQ(half_to_float(0x3C00), 1.0F);
  EXPECT_EQ(half_to_float(0xC000), -2.0F);
  EXPECT_EQ(half_to_float(0x0001), 0x1p-24F);
  EXPECT_EQ(half_to_float(0x7BFF), 65504.0F);
  EXPECT_EQ(half_to_float(0x7C00), std::numeric_limits<float>::infinity());
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(float_to_half(1.0F + 0x1p-11F), 0x3C00);             // tie: even below
  EXPECT_EQ(float_to_half(1.0F + 0x1p-10F + 0x1p-11F), 0x3C02);  // tie: even above
  EXPECT_EQ(float_to_half(1.0F + 0x1p-11F + 0x1p-20F), 0x3C01);
  EXPECT_EQ(float_to_half(65519.0F), 0x7BFF);
  EXPECT_EQ(float_to_half(65520.0F), 0x7C00);
  EXPECT_EQ(float_to_half(0x1p-25F), 0x0000);
  EXPECT_EQ(float_to_half(0x1.8p-25F), 0x0001);
  EXPECT_EQ(float_to_half(-1e30F), 0xFC00);
}

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(bfloat16_to_float(0x3F80), 1.0F);
  EXPECT_EQ(float_to_bfloat16(1.0F), 0x3F80);
  EXPECT_EQ(float_to_bfloat16(1.0F + 0x1p-8F), 0x3F80);
  EXPECT_EQ(float_to_bfloat16(1.0F + 0x1p-7F + 0x1p-8F), 0x3F82);
  EXPECT_EQ(float_to_bfloat16(std::numeric_limits<float>::infinity()), 0x7F80);
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(std::nanf("")))));
}

}  // namespace
}  // namespace leadline
