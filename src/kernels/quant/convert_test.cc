// SPDX-License-Identifier: Apache-2.0
// Conversions against their definition in double, on every instruction set.
#include "kernels/quant/convert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/kernel_testing.h"

namespace leadline::kernels {
namespace {

template <typename T>
void quantize_like_the_definition(float scale, int32_t zero) {
  const auto lo = static_cast<float>(std::numeric_limits<T>::min() - zero);
  const auto hi = static_cast<float>(std::numeric_limits<T>::max() - zero);
  std::mt19937 random(1);
  auto in = random_values<float>(1000, 1.2 * static_cast<double>(lo), 1.2 * static_cast<double>(hi), random);
  for (size_t i = 0; i < 300; ++i) in[i] = static_cast<float>(i) / 2.0F - 75.0F;  // ties
  for (float& x : in) x *= scale;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (float odd : {0.0F, -0.0F, kInf, -kInf, 1e38F, -1e38F, 0.49999997F * scale, -0.49999997F * scale, 1e-40F}) {
    in.push_back(odd);
  }
  for_each_target([&] {
    for (int64_t first : {0, 1, 7, 998}) {
      const int64_t count = static_cast<int64_t>(in.size()) - first;
      std::vector<T> out(static_cast<size_t>(count));
      quantize_row<T>()(in.data() + first, out.data(), count, {scale, zero, lo, hi});
      for (size_t i = 0; i < out.size(); ++i) {
        const auto quotient = static_cast<double>(in[i + static_cast<size_t>(first)] / scale);
        const double rounded = std::round(std::min<double>(std::max<double>(quotient, lo), hi));
        ASSERT_EQ(static_cast<int32_t>(out[i]), static_cast<int32_t>(rounded) + zero) << quotient;
      }
    }
  });
}

TEST(QuantizeRow, RoundsTiesAwayFromZeroAndSaturates) {
  for (float scale : {1.0F, 0.0237F, 3.0F}) {
    quantize_like_the_definition<int8_t>(scale, 0);
    quantize_like_the_definition<int8_t>(scale, -128);
    quantize_like_the_definition<uint8_t>(scale, 3);
    quantize_like_the_definition<uint8_t>(scale, 255);
    quantize_like_the_definition<int16_t>(scale, 0);
  }
}

TEST(QuantizeRow, NanBecomesTheHighestOf8BitsAndTheLowestOf16) {
  const std::vector<float> in(40, std::numeric_limits<float>::quiet_NaN());
  for_each_target([&] {
    std::vector<int8_t> bytes(40);
    quantize_row<int8_t>()(in.data(), bytes.data(), 40, {1.0F, 2, -130.0F, 125.0F});
    EXPECT_EQ(bytes, std::vector<int8_t>(40, 127));
    std::vector<int16_t> words(40);
    quantize_row<int16_t>()(in.data(), words.data(), 40, {1.0F, 0, -32768.0F, 32767.0F});
    EXPECT_EQ(words, std::vector<int16_t>(40, -32768));
  });
}

template <typename T>
void dequantize_like_the_definition(int32_t zero) {
  std::vector<T> in;
  for (int i = 0; i < 257; ++i) in.push_back(static_cast<T>(i * 257));
  for_each_target([&] {
    std::vector<float> out(in.size());
    dequantize_row<T>()(in.data(), out.data(), static_cast<int64_t>(in.size()), 0.037F, zero);
    for (size_t i = 0; i < in.size(); ++i) ASSERT_EQ(out[i], 0.037F * static_cast<float>(in[i] - zero));
  });
}

TEST(DequantizeRow, EveryLevel) {
  dequantize_like_the_definition<int8_t>(-5);
  dequantize_like_the_definition<uint8_t>(200);
  dequantize_like_the_definition<int16_t>(0);
}

}  // namespace
}  // namespace leadline::kernels
