// SPDX-License-Identifier: Apache-2.0
#include "kernels/reduce/layer_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/kernel_testing.h"

namespace leadline::kernels {
namespace {

void compare_with_plain_loop() {
  std::minstd_rand random(3);
  std::uniform_real_distribution<float> uniform(-2.0F, 3.0F);
  for (const int64_t count : {1, 2, 7, 16, 19, 64, 67, 131, 256, 1031}) {
    std::vector<float> in(static_cast<size_t>(count));
    std::vector<float> gain(in.size());
    std::vector<float> shift(in.size());
    for (auto* values : {&in, &gain, &shift}) {
      for (float& v : *values) v = uniform(random);
    }
    double mean = 0;
    for (float v : in) mean += v / static_cast<double>(count);
    double variance = 0;
    for (float v : in) variance += (v - mean) * (v - mean) / static_cast<double>(count);
    for (const int extras : {0, 1, 2, 3}) {
      std::vector<float> out = in;  // in place
      layer_norm().row(out.data(), (extras & 1) != 0 ? gain.data() : nullptr,
                       (extras & 2) != 0 ? shift.data() : nullptr, out.data(), count, 1e-3F);
      for (size_t i = 0; i < in.size(); ++i) {
        double expected = (in[i] - mean) / std::sqrt(variance + 1e-3);
        if ((extras & 1) != 0) expected *= gain[i];
        if ((extras & 2) != 0) expected += shift[i];
        ASSERT_NEAR(out[i], expected, 2e-5) << count << ' ' << i;
      }
    }
  }
}

void compare_ranges_with_row() {
  std::mt19937 random(4);
  for (const int64_t count : {1, 63, 64, 65, 500, 1031}) {
    const auto in = random_values<float>(count, -2, 3, random);
    const LayerNorm norm = layer_norm();
    std::vector<float> row(in.size()), ranges(in.size());
    norm.row(in.data(), nullptr, nullptr, row.data(), count, 1e-3F);
    LayerNormSums sum, squares;
    const auto over_ranges = [&](const auto& body) {
      for (int64_t i = 0; i < count; i += 128) body(IndexRange{i, std::min(count, i + 128)});
    };
    over_ranges([&](IndexRange range) { norm.add(in.data(), count, range, sum); });
    const float n = static_cast<float>(count);
    const float mean = sum.total / n;
    over_ranges([&](IndexRange range) { norm.add_squares(in.data(), count, range, mean, squares); });
    const float scale = 1.0F / std::sqrt(squares.total / n + 1e-3F);
    over_ranges([&](IndexRange range) { norm.write(in.data(), nullptr, nullptr, ranges.data(), range, mean, scale); });
    ASSERT_EQ(ranges, row) << count;
  }
}

TEST(LayerNorm, RangesGiveTheBitsOfTheRow) { for_each_target(compare_ranges_with_row); }
TEST(LayerNorm, RowsOfAnyLengthAgreeWithThePlainLoop) { for_each_target(compare_with_plain_loop); }

}  // namespace
}  // namespace leadline::kernels
