// SPDX-License-Identifier: Apache-2.0
// The parts of 8-bit softmax against their definitions, on every instruction set.
#include "kernels/elementwise/softmax_8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/kernel_testing.h"

namespace leadline::kernels {
namespace {

template <typename T>
void find_every_maximum() {
  constexpr T kLowest = std::numeric_limits<T>::lowest();
  for_each_target([&] {
    for (size_t count = 1; count < 200; count += 7) {
      for (size_t at = 0; at < count; ++at) {
        std::vector<T> values(count, kLowest);
        values[at] = static_cast<T>(kLowest + 3);
        ASSERT_EQ(row_max_8<T>()(values.data(), static_cast<int64_t>(count)), values[at]) << at << " of " << count;
      }
    }
  });
}

TEST(RowMax8, FindsItAnywhere) {
  find_every_maximum<int8_t>();
  find_every_maximum<uint8_t>();
}

template <typename T>
void compare_levels(int32_t zero_point) {
  std::array<float, 256> values;
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 4.0F;
  values[255] = std::numeric_limits<float>::infinity();
  for_each_target([&] {
    for (float factor : {1.0F, 0.37F, 9.0F, 1e-3F, 1e30F}) {
      std::array<T, 256> levels;
      softmax_levels_8<T>()(values.data(), factor, zero_point, levels.data());
      for (size_t i = 0; i < values.size(); ++i) {
        const double level = std::floor(std::min<double>(values[i] * factor, 65536.0) + 0.5) + zero_point;
        ASSERT_EQ(static_cast<double>(levels[i]),
                  std::clamp<double>(level, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
      }
    }
    std::array<T, 256> levels;
    softmax_levels_8<T>()(values.data(), std::numeric_limits<float>::quiet_NaN(), zero_point, levels.data());
    EXPECT_EQ(levels[0], std::numeric_limits<T>::max());
  });
}

TEST(SoftmaxLevels8, AreRoundedHalvesUpAndSaturate) {
  compare_levels<int8_t>(-128);
  compare_levels<uint8_t>(0);
}

}  // namespace
}  // namespace leadline::kernels
