// SPDX-License-Identifier: Apache-2.0
#include "debug/error_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace leadline::debug {
namespace {

struct Pairs {
  std::vector<float> values;
  std::vector<float> references;
};

Pairs random_pairs(int64_t count) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  Pairs pairs;
  for (int64_t i = 0; i < count; ++i) {
    pairs.references.push_back(normal(random) * static_cast<float>(1 + i % 7));
    pairs.values.push_back(pairs.references.back() + 0.1F * normal(random) + 0.02F);
  }
  return pairs;
}

ErrorSums sums_of(const Pairs& pairs, int64_t channels) {
  ErrorSums sums(channels);
  const auto count = static_cast<int64_t>(pairs.values.size());
  for (int64_t i = 0; i < count; i += sums.block()) {
    sums.add(&pairs.values[static_cast<size_t>(i)], &pairs.references[static_cast<size_t>(i)],
             std::min(sums.block(), count - i));
  }
  return sums;
}

class ChannelCounts : public testing::TestWithParam<int64_t> {};

TEST_P(ChannelCounts, StatisticsAreThoseOfThePlainFormulas) {
  const int64_t channels = GetParam();
  const Pairs pairs = random_pairs(channels * 97);
  const ErrorStatistics got = sums_of(pairs, channels).statistics(0.5);
  double error = 0, squared = 0, signal = 0, power = 0, product = 0, largest = 0;
  std::vector<double> lost(static_cast<size_t>(channels)), kept(static_cast<size_t>(channels));
  for (size_t i = 0; i < pairs.values.size(); ++i) {
    const double a = pairs.values[i], r = pairs.references[i], e = a - r;
    error += e;
    squared += e * e;
    signal += r * r;
    power += a * a;
    product += a * r;
    largest = std::max(largest, std::fabs(e));
    lost[i % lost.size()] += e * e;
    kept[i % kept.size()] += r * r;
  }
  const auto n = static_cast<double>(pairs.values.size());
  double share = 0;
  for (size_t c = 0; c < lost.size(); ++c) share += std::min(1.0, lost[c] / kept[c]) / static_cast<double>(channels);
  EXPECT_EQ(got.elements, channels * 97);
  EXPECT_NEAR(got.mean_error, error / n, 1e-7);
  EXPECT_NEAR(got.mean_squared_error, squared / n, 1e-6 * squared / n);
  EXPECT_NEAR(got.stddev, std::sqrt(squared / n - error / n * error / n), 1e-6);
  EXPECT_NEAR(got.max_abs_error, largest, 1e-5);
  EXPECT_NEAR(got.rmse_over_scale, 2 * std::sqrt(squared / n), 1e-6);
  EXPECT_NEAR(got.cosine, product / std::sqrt(signal * power), 1e-6);
  EXPECT_NEAR(got.snr_db, 10 * std::log10(signal / squared), 1e-4);
  EXPECT_NEAR(got.lost_signal, share, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(ErrorSums, ChannelCounts, testing::Values(1, 2, 3, 5, 16, 17, 100, 1280, 20000));

TEST(ErrorSums, CountsWhatIsNotFiniteAndLeavesItOut) {
  Pairs pairs = random_pairs(500);
  const ErrorStatistics before = sums_of(pairs, 5).statistics(0);
  pairs.values.insert(pairs.values.begin(), {std::numeric_limits<float>::quiet_NaN(), 1, 2, 3, 4});
  pairs.references.insert(pairs.references.begin(), {0, std::numeric_limits<float>::infinity(), 2, 3, 4});
  const ErrorStatistics after = sums_of(pairs, 5).statistics(0);
  EXPECT_EQ(after.not_finite, 2);
  EXPECT_EQ(after.elements, before.elements + 3);
  EXPECT_NEAR(after.mean_squared_error * 503, before.mean_squared_error * 500, 1e-4);
}

TEST(ErrorSums, SquaresThatOverflowFloatAreSummedAllTheSame) {
  const std::vector<float> values(64, 3e30F), references(64, 1e30F);
  ErrorSums sums(1);
  sums.add(values.data(), references.data(), 64);
  EXPECT_NEAR(sums.statistics(0).rmse / 2e30, 1.0, 1e-6);
  EXPECT_EQ(sums.statistics(0).not_finite, 0);
}

TEST(ErrorSums, NoErrorIsTheBestSnr) {
  const std::vector<float> values(10, 2.0F);
  ErrorSums sums(10);
  sums.add(values.data(), values.data(), 10);
  EXPECT_EQ(sums.statistics(1).snr_db, kBestSnrDb);
  EXPECT_EQ(sums.statistics(1).lost_signal, 0.0);
  EXPECT_EQ(sums.statistics(1).cosine, 1.0);
}

TEST(ErrorSums, WorstChannelsAreThoseThatLoseMost) {
  const std::vector<float> references = {1, 1, 1, 100};
  const std::vector<float> values = {1, 1.5, 0.9F, 101};
  ErrorSums sums(4);
  sums.add(values.data(), references.data(), 4);
  const auto worst = sums.worst_channels(2);
  ASSERT_EQ(worst.size(), 2U);
  EXPECT_EQ(worst[0].channel, 1);
  EXPECT_NEAR(worst[0].lost_signal, 0.25, 1e-6);
  EXPECT_EQ(worst[1].channel, 2);
}

}  // namespace
}  // namespace leadline::debug
