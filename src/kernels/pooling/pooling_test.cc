// SPDX-License-Identifier: Apache-2.0
// Pooled rows against plain loops, on every instruction set, with channel counts around those of a vector.
#include "kernels/pooling/pooling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "kernels/kernel_testing.h"

namespace leadline::kernels {
namespace {

struct Image {
  int64_t rows, width, channels;
};

/// One channel of a window, by the definition.
template <typename T>
T expected(Pooling pooling, const PoolRow<T>& r, const PoolSpan& span, int64_t channel) {
  double most = std::numeric_limits<T>::lowest();
  std::conditional_t<std::is_same_v<T, float>, float, int64_t> sum = 0;
  for (int64_t y = 0; y < r.rows; ++y) {
    for (int64_t x = span.begin; x < span.end; ++x) {
      const T value = r.in[y * r.row_stride + x * r.channels + channel];
      if (value > most) most = value;
      sum += value;
    }
  }
  const auto count = static_cast<double>(r.rows * (span.end - span.begin));
  double result = most;
  if (pooling == Pooling::kAverage) {
    result = std::is_same_v<T, float> ? static_cast<float>(sum) / static_cast<float>(count)
                                      : std::round(static_cast<double>(sum) / count);
  }
  return static_cast<T>(std::min<double>(std::max<double>(result, r.lo), r.hi));
}

template <typename T>
void compare(Pooling pooling, const Image& image, T lo, T hi, T least, T most) {
  std::mt19937 random(static_cast<uint32_t>(image.channels));
  const auto in = random_values<T>(image.rows * image.width * image.channels, least, most, random);
  std::vector<PoolSpan> columns;
  for (int64_t x = 0; x < image.width; ++x) columns.push_back({std::max<int64_t>(0, x - 1), x + 1});
  columns.push_back({0, image.width});
  const auto pixels = static_cast<int64_t>(columns.size());
  for_each_target([&] {
    std::vector<T> out(static_cast<size_t>(pixels * image.channels));
    const PoolRow<T> row{
        in.data(), image.rows, image.width * image.channels, columns.data(), pixels, image.channels, lo,
        hi,        out.data()};
    pool_row_function<T>(pooling)(row);
    for (int64_t x = 0; x < pixels; ++x) {
      for (int64_t c = 0; c < image.channels; ++c) {
        ASSERT_EQ(out[static_cast<size_t>(x * image.channels + c)],
                  expected(pooling, row, columns[static_cast<size_t>(x)], c))
            << image.channels << " channels, pixel " << x << ", channel " << c;
      }
    }
  });
}

template <typename T>
void compare_all(Pooling pooling, T lo, T hi, T least, T most) {
  for (int64_t channels : {1, 3, 4, 7, 8, 15, 16, 17, 24, 31, 32, 40, 63, 64, 65, 100, 128, 200, 256, 300}) {
    compare<T>(pooling, {3, 5, channels}, lo, hi, least, most);
  }
  compare<T>(pooling, {16, 16, 40}, lo, hi, least, most);  // 256 values
  compare<T>(pooling, {1, 1, 40}, lo, hi, least, most);
}

TEST(Pooling, MaximumOfFloats) { compare_all<float>(Pooling::kMax, -1.0F, 0.9F, -2.0F, 1.0F); }
TEST(Pooling, MaximumOfInt8) { compare_all<int8_t>(Pooling::kMax, -128, 120, -128, 127); }
TEST(Pooling, MaximumOfUInt8) { compare_all<uint8_t>(Pooling::kMax, 3, 255, 0, 255); }
TEST(Pooling, AverageOfFloats) { compare_all<float>(Pooling::kAverage, -0.3F, 0.4F, -1.0F, 1.0F); }
TEST(Pooling, AverageOfInt8) {
  compare_all<int8_t>(Pooling::kAverage, -128, 127, -128, 127);
  compare_all<int8_t>(Pooling::kAverage, -4, 5, -9, 9);
  compare_all<int8_t>(Pooling::kAverage, -128, 127, -128, -127);
}
TEST(Pooling, AverageOfUInt8) {
  compare_all<uint8_t>(Pooling::kAverage, 0, 255, 0, 255);
  compare_all<uint8_t>(Pooling::kAverage, 0, 255, 254, 255);
}

TEST(Pooling, EverySumIsDividedExactly) {
  for_each_target([&] {
    const auto function = pool_row_function<int8_t>(Pooling::kAverage);
    constexpr int64_t kChannels = 64;
    for (int64_t count : {2, 3, 5, 6, 7, 9, 25, 49, 63, 64, 81, 121, 255, 256}) {
      for (int64_t first = -128 * count; first + kChannels <= 127 * count; first += kChannels) {
        // Channel c has the sum first + c: each value is the quotient, the first of them one more.
        std::vector<int8_t> in(static_cast<size_t>(count * kChannels));
        for (int64_t i = 0; i < count * kChannels; ++i) {
          const int64_t shifted = first + i % kChannels + 128 * count;
          in[static_cast<size_t>(i)] =
              static_cast<int8_t>(shifted / count - 128 + (i / kChannels < shifted % count ? 1 : 0));
        }
        std::vector<int8_t> out(kChannels);
        const PoolSpan span{0, count};
        function({in.data(), 1, 0, &span, 1, kChannels, -128, 127, out.data()});
        for (int64_t c = 0; c < kChannels; ++c) {
          const auto sum = static_cast<double>(first + c);
          ASSERT_EQ(out[static_cast<size_t>(c)], std::lround(sum / static_cast<double>(count)))
              << sum << " / " << count;
        }
      }
    }
  });
}

TEST(Pooling, MaximumPassesOverNanAndAverageKeepsIt) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for_each_target([&] {
    std::vector<float> in(64, nan);
    for (size_t c = 0; c < 32; ++c) in[32 + c] = 2.0F;
    std::vector<float> out(32);
    const PoolSpan span{0, 2};
    const PoolRow<float> row{in.data(), 1, 0, &span, 1, 32, 0.0F, 6.0F, out.data()};
    pool_row_function<float>(Pooling::kMax)(row);
    for (float value : out) EXPECT_EQ(value, 2.0F);
    pool_row_function<float>(Pooling::kAverage)(row);
    for (float value : out) EXPECT_TRUE(std::isnan(value));
  });
}

}  // namespace
}  // namespace leadline::kernels
