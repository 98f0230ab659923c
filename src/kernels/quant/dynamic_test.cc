// SPDX-License-Identifier: Apache-2.0
#include "kernels/quant/dynamic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/thread_pool.h"
#include "kernels/kernel_testing.h"
#include "kernels/quant/row_quantize.h"
#include "ops/loops/quantize_rows.h"

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
  const RowQuantization q =
      ops::quantize_row(values.data(), static_cast<int64_t>(values.size()), levels.data(), RowRule::kXnnpack);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(q.scale * static_cast<float>(levels[i] - q.zero_point), values[i], q.scale * 0.51F) << i;
  }
}

TEST(DynamicQuantization, NanAndInfinityStayInside) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), inf, -inf}) {
    const std::vector<float> values = {1.0F, bad, -1.0F};
    std::vector<int8_t> levels(values.size());
    const RowQuantization q = ops::quantize_row(values.data(), 3, levels.data(), RowRule::kXnnpack);
    EXPECT_GE(q.zero_point, -128);
    EXPECT_LE(q.zero_point, 127);
  }
}

struct Expected {
  float scale = 1.0F;
  int32_t zero_point = 0;
  std::vector<int8_t> levels;
};

/// Value by value, with the library's rounding functions.
Expected quantize_plainly(RowRule rule, const std::vector<float>& values) {
  float min = 0.0F;
  float max = 0.0F;
  for (const float value : values) {
    if (value < min) min = value;
    if (value > max) max = value;
  }
  Expected e;
  e.levels.resize(values.size());
  if (rule == RowRule::kXnnpack) {
    const DynamicQuantization q = dynamic_quantization(min, max);
    e.scale = q.scale;
    e.zero_point = q.zero_point;
    const float inverse = 1.0F / q.scale;
    for (size_t i = 0; i < values.size(); ++i) {
      const float level = values[i] * inverse;
      const double bounded = std::isnan(level) ? -1e3 : std::clamp<double>(level, -1e3, 1e3);
      e.levels[i] = static_cast<int8_t>(std::clamp(std::nearbyint(bounded) + q.zero_point, -128.0, 127.0));
    }
    return e;
  }
  if (min == max || !std::isfinite(max - min)) return e;
  if (rule == RowRule::kTfliteSymmetric) {
    const float reach = std::max(-min, max);
    e.scale = reach / 127.0F;
    for (size_t i = 0; i < values.size(); ++i) {
      const float rounded = std::round(values[i] * (127.0F / reach));
      e.levels[i] = static_cast<int8_t>(std::isnan(rounded) ? -127.0F : std::clamp(rounded, -127.0F, 127.0F));
    }
    return e;
  }
  const double scale = static_cast<double>(max - min) / 255.0;
  const bool low_end = 128.0 + std::abs(min / scale) < 127.0 + std::abs(max / scale);
  e.scale = static_cast<float>(scale);
  e.zero_point =
      static_cast<int32_t>(std::round(std::clamp(low_end ? -128.0 - min / scale : 127.0 - max / scale, -128.0, 127.0)));
  for (size_t i = 0; i < values.size(); ++i) {
    const float level = values[i] * static_cast<float>(1.0 / e.scale);
    const float bounded = std::isnan(level) ? -256.0F : std::clamp(level, -256.0F, 256.0F);
    const auto cut = static_cast<int32_t>(bounded < 0.0F ? bounded - 0.5F : bounded + 0.5F);
    e.levels[i] = static_cast<int8_t>(std::clamp(cut + e.zero_point, -128, 127));
  }
  return e;
}

std::vector<std::vector<float>> many_rows() {
  std::mt19937 random(5);
  std::vector<std::vector<float>> rows;
  for (const int64_t count : {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 131, 300, 777}) {
    for (const float reach : {0.0F, 1e-30F, 1.0F, 127.5F, 1e30F}) {
      rows.push_back(random_values<float>(count, -reach, reach, random));
      rows.push_back(random_values<float>(count, 0, reach, random));
      rows.push_back(random_values<float>(count, -reach, 0, random));
    }
  }
  // Halves, which the rules round differently: levels are steps of 1, 127 or 255 of them.
  for (const float step : {0.5F, 1.0F, 0.49999997F}) {
    std::vector<float> ties;
    for (int i = -254; i <= 254; ++i) ties.push_back(static_cast<float>(i) * step);
    rows.push_back(ties);
  }
  const float inf = std::numeric_limits<float>::infinity();
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), inf, -inf, -0.0F, 1e-45F}) {
    for (const size_t at : {0U, 1U, 18U, 40U}) {
      rows.push_back(random_values<float>(41, -3, 2, random));
      rows.back()[at] = odd;
      rows.push_back(std::vector<float>(41, odd));
    }
  }
  return rows;
}

TEST(DynamicQuantization, EveryTargetAndRuleHasTheBitsOfPlainLoops) {
  const std::vector<std::vector<float>> rows = many_rows();
  ThreadPool pool(1);
  for_each_target([&] {
    for (const RowRule rule : {RowRule::kXnnpack, RowRule::kTfliteSymmetric, RowRule::kTfliteAsymmetric}) {
      for (size_t r = 0; r < rows.size(); ++r) {
        const auto count = static_cast<int64_t>(rows[r].size());
        const Expected expected = quantize_plainly(rule, rows[r]);
        const TestBytes levels(std::max<int64_t>(count, 1));  // of the exact size
        auto* got = reinterpret_cast<int8_t*>(levels.data());
        float scale = 0;
        int32_t zero_point = 0;
        ops::quantize_rows(rows[r].data(), 1, count, got, {&scale, &zero_point}, pool, rule);
        ASSERT_EQ(scale, expected.scale) << "row " << r << " rule " << static_cast<int>(rule);
        ASSERT_EQ(zero_point, expected.zero_point) << "row " << r << " rule " << static_cast<int>(rule);
        ASSERT_EQ(std::vector<int8_t>(got, got + count), expected.levels)
            << "row " << r << " rule " << static_cast<int>(rule);
      }
    }
  });
}

TEST(DynamicQuantization, ManyRowsHaveTheParametersOfEach) {
  std::vector<std::vector<float>> rows = many_rows();
  ThreadPool pool(2);
  for_each_target([&] {
    for (const size_t size : {1U, 17U, 41U, 300U}) {
      std::vector<float> values;
      std::vector<Expected> expected;
      for (const std::vector<float>& row : rows) {
        if (row.size() < size) continue;
        const std::vector<float> part(row.end() - static_cast<ptrdiff_t>(size), row.end());
        values.insert(values.end(), part.begin(), part.end());
        expected.push_back(quantize_plainly(RowRule::kXnnpack, part));
      }
      std::vector<int8_t> levels(values.size());
      std::vector<float> scales(expected.size());
      std::vector<int32_t> zero_points(expected.size());
      ops::quantize_rows(values.data(), static_cast<int64_t>(expected.size()), static_cast<int64_t>(size),
                         levels.data(), {scales.data(), zero_points.data()}, pool);
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(scales[i], expected[i].scale) << size << ", row " << i;
        ASSERT_EQ(zero_points[i], expected[i].zero_point) << size << ", row " << i;
        ASSERT_TRUE(std::equal(expected[i].levels.begin(), expected[i].levels.end(), levels.data() + i * size));
      }
    }
  });
}

TEST(DynamicQuantization, ALongRowIsTheSameOnManyThreads) {
  std::mt19937 random(6);
  const int64_t count = 100'003;
  std::vector<float> values = random_values<float>(2 * count, -1, 1, random);
  values[static_cast<size_t>(count) - 1] = 3.0F;  // the range is decided in the last part
  ThreadPool pool(3);
  for (const RowRule rule : {RowRule::kXnnpack, RowRule::kTfliteSymmetric, RowRule::kTfliteAsymmetric}) {
    std::vector<int8_t> levels(values.size());
    std::vector<float> scales(2);
    std::vector<int32_t> zero_points(2);
    ops::quantize_rows(values.data(), 2, count, levels.data(), {scales.data(), zero_points.data()}, pool, rule);
    for (int64_t row = 0; row < 2; ++row) {
      const std::vector<float> one(values.begin() + row * count, values.begin() + (row + 1) * count);
      const Expected expected = quantize_plainly(rule, one);
      EXPECT_EQ(scales[static_cast<size_t>(row)], expected.scale);
      EXPECT_EQ(zero_points[static_cast<size_t>(row)], expected.zero_point);
      EXPECT_TRUE(std::equal(expected.levels.begin(), expected.levels.end(), levels.begin() + row * count));
    }
  }
}

}  // namespace
}  // namespace leadline::kernels
