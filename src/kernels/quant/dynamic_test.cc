// SPDX-License-Identifier: Apache-2.0
#include "kernels/quant/dynamic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace leadline::kernels {
namespace {

TEST(DynamicQuantization, CoversTheRangeAndKeepsZeroExact) {
  const DynamicQuantization q = dynamic_quantization(-1.0F, 3.0F);
  EXPECT_NEAR(q.scale, 4.0F / 255.0F, 1e-7F);
  EXPECT_EQ(q.zero_point, -64);
}

TEST(DynamicQuantization, OneSidedRangesReachZero) {
  EXPECT_EQ(dynamic_quantization(1.0F, 2.0F).zero_point, -128);
  EXPECT_EQ(dynamic_quantization(-2.0F, -1.0F).zero_point, 127);
  EXPECT_EQ(dynamic_quantization(0.0F, 0.0F).scale, 1.0F);
}

TEST(DynamicQuantization, ValuesComeBackWithinHalfAStep) {
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) values.push_back(std::sin(static_cast<float>(i)) * 5.0F + 1.0F);
  std::vector<int8_t> levels(values.size());
  const DynamicQuantization q = quantize_row(values.data(), static_cast<int64_t>(values.size()), levels.data());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(q.scale * static_cast<float>(levels[i] - q.zero_point), values[i], q.scale * 0.51F) << i;
  }
}

TEST(DynamicQuantization, NanAndInfinityStayInside) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), inf, -inf}) {
    const std::vector<float> values = {1.0F, bad, -1.0F};
    std::vector<int8_t> levels(values.size());
    const DynamicQuantization q = quantize_row(values.data(), 3, levels.data());
    EXPECT_GE(q.zero_point, -128);
    EXPECT_LE(q.zero_point, 127);
  }
}

}  // namespace
}  // namespace leadline::kernels
