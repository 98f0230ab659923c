// SPDX-License-Identifier: Apache-2.0
// Bilinear rows against their definition, on every instruction set, with channel counts around those of a vector.
#include "kernels/resize/bilinear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/kernel_testing.h"

namespace leadline::kernels {
namespace {

float expected(float top_left, float top_right, float bottom_left, float bottom_right, float wx, float wy) {
  const float top = top_left + (top_right - top_left) * wx;
  const float bottom = bottom_left + (bottom_right - bottom_left) * wx;
  return top + (bottom - top) * wy;
}

/// In double, where nothing is rounded before the end.
int32_t expected(int32_t top_left, int32_t top_right, int32_t bottom_left, int32_t bottom_right, int32_t wx,
                 int32_t wy) {
  const double x = wx / 2048.0;
  const double y = wy / 2048.0;
  const double value = (top_left * (1 - x) + top_right * x) * (1 - y) + (bottom_left * (1 - x) + bottom_right * x) * y;
  return static_cast<int32_t>(std::floor(value + 0.5));
}

template <typename T, typename Weight>
void compare(double least, double most, const std::vector<Weight>& weights) {
  std::mt19937 random(1);
  constexpr int64_t kWidth = 4;
  std::vector<ResizeTap<Weight>> columns;
  for (const Weight weight : weights) {
    for (int64_t x = 0; x + 1 < kWidth; ++x) columns.push_back({x, x + 1, weight});
    columns.push_back({kWidth - 1, kWidth - 1, weight});
  }
  for (int64_t channels : {1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 70}) {
    const auto top = random_values<T>(kWidth * channels, least, most, random);
    const auto bottom = random_values<T>(kWidth * channels, least, most, random);
    for (const Weight weight : weights) {
      for_each_target([&] {
        std::vector<T> out(columns.size() * static_cast<size_t>(channels));
        bilinear_row<T, Weight>()({top.data(), bottom.data(), weight, columns.data(),
                                   static_cast<int64_t>(columns.size()), channels, out.data()});
        for (size_t i = 0; i < out.size(); ++i) {
          const auto& tap = columns[i / static_cast<size_t>(channels)];
          const auto c = i % static_cast<size_t>(channels);
          const auto left = static_cast<size_t>(tap.first * channels) + c;
          const auto right = static_cast<size_t>(tap.second * channels) + c;
          ASSERT_EQ(out[i], expected(top[left], top[right], bottom[left], bottom[right], tap.weight, weight))
              << channels << " channels, at " << i;
        }
      });
    }
  }
}

TEST(BilinearRow, OfFloats) { compare<float, float>(-2, 2, {0.0F, 0.25F, 0.3F, 0.999F, 1.0F}); }
TEST(BilinearRow, OfInt8IsRoundedOnce) { compare<int8_t, int32_t>(-128, 127, {0, 1, 512, 1024, 1536, 2047, 2048}); }
TEST(BilinearRow, OfUInt8IsRoundedOnce) { compare<uint8_t, int32_t>(0, 255, {0, 1, 512, 1024, 1536, 2047, 2048}); }

}  // namespace
}  // namespace leadline::kernels
