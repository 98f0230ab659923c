// SPDX-License-Identifier: Apache-2.0
// tests/python/test_calibration.py compares the choices with brute force in numpy.
#include "quantize/ranges.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "leadline/error.h"

namespace leadline::quantize {
namespace {

TensorStatistics statistics_of(const std::vector<std::vector<float>>& samples) {
  Recorder recorder;
  TensorStatistics result;
  for (const std::vector<float>& sample : samples) {
    Observation seen;
    recorder.record(DType::kFloat32, std::as_bytes(std::span(sample)), true, seen);
    result.add_sample(seen);
  }
  return result;
}

std::vector<float> normal_values(size_t count, float mean, float deviation) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

TEST(Ranges, MovingAverageCountsLaterSamplesMore) {
  const TensorStatistics seen = statistics_of({{0.0F, 1.0F}, {-1.0F, 3.0F}, {-2.0F, 5.0F}});
  const Range range = choose_range(seen, {.method = CalibrationMethod::kMovingAverage, .momentum = 0.5}, 8, false);
  EXPECT_FLOAT_EQ(range.min, -1.25F);
  EXPECT_FLOAT_EQ(range.max, 3.5F);
  EXPECT_EQ(choose_range(seen, {}, 8, false), (Range{-2.0F, 5.0F}));
}

TEST(Ranges, PercentileCutsBothEnds) {
  std::vector<float> values(10000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 10000.0F - 0.5F;
  const TensorStatistics seen = statistics_of({values});
  const Range range = choose_range(seen, {.method = CalibrationMethod::kPercentile, .percentile = 90.0}, 8, false);
  EXPECT_NEAR(range.min, -0.45, 1e-3);
  EXPECT_NEAR(range.max, 0.45, 1e-3);
  const Range whole = choose_range(seen, {.method = CalibrationMethod::kPercentile, .percentile = 100.0}, 8, false);
  EXPECT_EQ(whole, seen.all.range);
  const Range symmetric = choose_range(seen, {.method = CalibrationMethod::kPercentile, .percentile = 90.0}, 8, true);
  EXPECT_NEAR(symmetric.max, 0.45, 1e-3);
}

TEST(Ranges, AnOutlierIsGivenUpAndSixteenBitsKeepIt) {
  std::vector<float> values = normal_values(100000, 0.0F, 1.0F);
  values.push_back(60.0F);
  const TensorStatistics seen = statistics_of({values});
  for (const CalibrationMethod method : {CalibrationMethod::kMse, CalibrationMethod::kKl}) {
    for (const bool symmetric : {false, true}) {
      const Range narrow = choose_range(seen, {.method = method}, 8, symmetric);
      EXPECT_LT(narrow.max, method == CalibrationMethod::kKl ? 40.0F : 59.0F);
      EXPECT_GT(narrow.max, 2.5F);
      EXPECT_LE(narrow.min, -2.5F);
      const Range wide = choose_range(seen, {.method = method}, 16, symmetric);
      EXPECT_GT(wide.max, method == CalibrationMethod::kKl ? 59.9F : 30.0F);
    }
  }
}

TEST(Ranges, ValuesFarFromZeroKeepTheirOrder) {
  for (const float centre : {100.0F, -100.0F}) {
    const TensorStatistics seen = statistics_of({normal_values(5000, centre, 0.01F)});
    for (const CalibrationMethod method :
         {CalibrationMethod::kPercentile, CalibrationMethod::kMse, CalibrationMethod::kKl}) {
      for (const bool symmetric : {false, true}) {
        const Range range = choose_range(seen, {.method = method}, 8, symmetric);
        EXPECT_LE(range.min, range.max);
        EXPECT_GE(range.min, seen.all.range.min);
        EXPECT_LE(range.max, seen.all.range.max);
      }
    }
  }
}

TEST(Ranges, ConstantsHaveARangeByEveryMethod) {
  for (const float constant : {0.0F, 3.0F, -1e-40F, 3e38F}) {
    const TensorStatistics seen = statistics_of({{constant, constant}});
    for (const CalibrationMethod method :
         {CalibrationMethod::kMinMax, CalibrationMethod::kMovingAverage, CalibrationMethod::kPercentile,
          CalibrationMethod::kMse, CalibrationMethod::kKl}) {
      EXPECT_EQ(choose_range(seen, {.method = method}, 8, false), (Range{constant, constant}));
    }
  }
}

TEST(Ranges, TinyAndHugeValuesGiveRangesInsideWhatWasSeen) {
  for (const float scale : {1e-44F, 1e-38F, 1e37F}) {
    std::vector<float> values;
    for (int i = -8; i <= 9; ++i) values.push_back(static_cast<float>(i) * scale);
    const TensorStatistics seen = statistics_of({values});
    for (const CalibrationMethod method :
         {CalibrationMethod::kPercentile, CalibrationMethod::kMse, CalibrationMethod::kKl}) {
      for (const int bits : {8, 16}) {
        const Range range = choose_range(seen, {.method = method}, bits, false);
        EXPECT_GE(range.min, seen.all.range.min);
        EXPECT_LE(range.max, seen.all.range.max);
        EXPECT_LE(range.min, range.max);
      }
    }
  }
}

TEST(Ranges, RulesOutsideTheirRangeAreRefused) {
  EXPECT_THROW(check_rule({}, 4), Error);
  EXPECT_THROW(check_rule({.percentile = 50.0}, 8), Error);
  EXPECT_THROW(check_rule({.percentile = std::nan("")}, 8), Error);
  EXPECT_THROW(check_rule({.momentum = 1.0}, 8), Error);
  EXPECT_NO_THROW(check_rule({.percentile = 100.0, .momentum = 0.0}, 16));
}

}  // namespace
}  // namespace leadline::quantize
