// SPDX-License-Identifier: Apache-2.0
// Thousands of made-up series, flat and leaking: how often each is taken for the other.
#include "guard/growth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace leadline::guard {
namespace {

constexpr double kFloor = 1024;
constexpr int kSeries = 2000;  // of each family and length; of long ones a tenth

using Series = std::vector<double>;
using Random = std::mt19937_64;

double normal(Random& random) { return std::normal_distribution<double>()(random); }
double uniform(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}
int whole(Random& random, int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }

GrowthVerdict verdict_of(const Series& series) {
  std::vector<SeriesPoint> points;
  for (size_t i = 0; i < series.size(); ++i) {
    points.push_back({static_cast<int64_t>(i) + 1, std::llround(series[i]) + int64_t{100'000'000}});
  }
  return fit_growth(points, kFloor).verdict;
}

/// Percent of series that are said to grow.
double percent_growing(int rounds, const std::function<void(Series&, Random&)>& make) {
  Random random(2007);
  const int count = rounds > 100 ? kSeries / 10 : kSeries;
  int growing = 0;
  for (int i = 0; i < count; ++i) {
    Series series(static_cast<size_t>(rounds));
    make(series, random);
    growing += verdict_of(series) == GrowthVerdict::kGrows ? 1 : 0;
  }
  return 100.0 * growing / count;
}

void add_noise(Series& series, Random& random, double size) {
  for (double& value : series) value += size * normal(random);
}
void add_line(Series& series, double per_round) {
  for (size_t i = 0; i < series.size(); ++i) series[i] += per_round * static_cast<double>(i);
}
void add_step(Series& series, Random& random, double height) {
  const int at = whole(random, 0, static_cast<int>(series.size()) - 1);
  for (size_t i = static_cast<size_t>(at); i < series.size(); ++i) series[i] += height;
}
/// The most that was ever asked for: what a heap keeps when the sizes of a loop vary.
void keep_highest(Series& series) {
  for (size_t i = 1; i < series.size(); ++i) series[i] = std::max(series[i], series[i - 1]);
}

struct Family {
  const char* name;
  double most;  // percent that may be taken for the other kind
  std::function<void(Series&, Random&)> make;
};

constexpr double kKB = 1000;
constexpr double kMB = 1'000'000;

const std::vector<Family>& flat_families() {
  static const std::vector<Family> families = {
      {"constant", 0, [](Series&, Random&) {}},
      {"normal noise", 0.5, [](Series& s, Random& r) { add_noise(s, r, kMB); }},
      {"skewed noise", 0.5,
       [](Series& s, Random& r) {
         for (double& v : s) v = kMB * std::exp(normal(r));
       }},
      {"spikes", 0.5,
       [](Series& s, Random& r) {
         add_noise(s, r, 10 * kKB);
         for (double& v : s) v += uniform(r, 0, 1) < 0.15 ? uniform(r, 0, 50 * kMB) : 0;
       }},
      {"two levels", 0.5,
       [](Series& s, Random& r) {
         for (double& v : s) v = whole(r, 0, 1) * kMB;
       }},
      {"a cache that fills in the first rounds", 1,
       [](Series& s, Random& r) {
         const int full = whole(r, 1, static_cast<int>(s.size()) * 2 / 5);
         for (size_t i = 0; i < s.size(); ++i) s[i] = 500 * kKB * std::min(static_cast<int>(i), full);
         add_noise(s, r, 10 * kKB);
       }},
      {"a buffer that is full in the first five eighths", 1,
       [](Series& s, Random& r) {
         const int full = whole(r, static_cast<int>(s.size()) / 4, static_cast<int>(s.size()) * 5 / 8);
         for (size_t i = 0; i < s.size(); ++i) s[i] = 78 * kKB * std::min(static_cast<int>(i), full);
         add_noise(s, r, 5 * kKB);
       }},
      {"warm-up that fades", 3,
       [](Series& s, Random& r) {
         const double span = uniform(r, 0.5, 3);
         for (size_t i = 0; i < s.size(); ++i) s[i] = -3 * kMB * std::exp(-static_cast<double>(i) / span);
         add_noise(s, r, 10 * kKB);
       }},
      {"one step", 0.5,
       [](Series& s, Random& r) {
         add_step(s, r, 2 * kMB);
         add_noise(s, r, 30 * kKB);
       }},
      {"two steps", 3,
       [](Series& s, Random& r) {
         add_step(s, r, uniform(r, 0.2, 1) * 2 * kMB);
         add_step(s, r, uniform(r, 0.2, 1) * 2 * kMB);
         add_noise(s, r, 10 * kKB);
       }},
      {"two steps without noise", 1,
       [](Series& s, Random& r) {
         add_step(s, r, uniform(r, 0, 2 * kMB));
         add_step(s, r, uniform(r, 0, 2 * kMB));
       }},
      {"a heap that keeps the highest of skewed sizes", 2,
       [](Series& s, Random& r) {
         for (double& v : s) v = kMB * std::exp(normal(r));
         keep_highest(s);
       }},
      {"a heap that keeps the highest of even sizes", 2,
       [](Series& s, Random& r) {
         for (double& v : s) v = uniform(r, 0, kMB) + uniform(r, 0, kMB) + uniform(r, 0, kMB);
         keep_highest(s);
       }},
      {"collected now and then", 0.5,
       [](Series& s, Random& r) {
         const int period = whole(r, 2, static_cast<int>(s.size()) / 3);
         const int phase = whole(r, 0, period - 1);
         for (size_t i = 0; i < s.size(); ++i) s[i] = kMB * ((static_cast<int>(i) + phase) % period);
       }},
      {"noise with a memory", 4,
       [](Series& s, Random& r) {
         double level = normal(r) * 1.4;
         for (double& v : s) v = kMB * (level = 0.7 * level + normal(r));
       }},
      {"falling", 0, [](Series& s, Random&) { add_line(s, -100 * kKB); }},
      {"one number more each round", 0, [](Series& s, Random&) { add_line(s, 40); }},
  };
  return families;
}

constexpr double kLeak = 50 * kKB;

/// What 20 rounds show.
const std::vector<Family>& leaks() {
  static const std::vector<Family> families = {
      {"exact", 0, [](Series& s, Random&) { add_line(s, kLeak); }},
      {"with noise of half a round's leak", 0.5,
       [](Series& s, Random& r) {
         add_line(s, kLeak);
         add_noise(s, r, 0.5 * kLeak);
       }},
      {"with noise of a whole round's leak", 3,
       [](Series& s, Random& r) {
         add_line(s, kLeak);
         add_noise(s, r, kLeak);
       }},
      {"behind a warm-up", 1,
       [](Series& s, Random& r) {
         const double span = uniform(r, 0.5, 3);
         for (size_t i = 0; i < s.size(); ++i) s[i] = -1.5 * kMB * std::exp(-static_cast<double>(i) / span);
         add_line(s, kLeak);
         add_noise(s, r, 5 * kKB);
       }},
      {"beside a step", 1,
       [](Series& s, Random& r) {
         add_step(s, r, kMB);
         add_line(s, kLeak);
         add_noise(s, r, 5 * kKB);
       }},
      {"in steps of three rounds", 0,
       [](Series& s, Random& r) {
         const int phase = whole(r, 0, 2);
         for (size_t i = 0; i < s.size(); ++i) s[i] = 3 * kLeak * ((static_cast<int>(i) + phase) / 3);
       }},
      {"in steps of four rounds", 0,
       [](Series& s, Random& r) {
         const int phase = whole(r, 0, 3);
         for (size_t i = 0; i < s.size(); ++i) s[i] = 4 * kLeak * ((static_cast<int>(i) + phase) / 4);
       }},
      {"of random sizes", 10,
       [](Series& s, Random& r) {
         double level = 0;
         for (double& v : s) v = level += std::exponential_distribution<double>(1 / kLeak)(r);
       }},
      {"with spikes", 12,
       [](Series& s, Random& r) {
         add_line(s, kLeak);
         for (double& v : s) v += uniform(r, 0, 1) < 0.1 ? uniform(r, 0, 1.5 * kMB) : 0;
       }},
  };
  return families;
}

TEST(Growth, FlatSeriesAreNotTakenForLeaks) {
  for (const int rounds : {12, 20, 40, 200}) {
    double sum = 0;
    for (const Family& family : flat_families()) {
      const double percent = percent_growing(rounds, family.make);
      EXPECT_LE(percent, family.most) << family.name << ", " << rounds << " rounds";
      sum += percent;
    }
    EXPECT_LE(sum / static_cast<double>(flat_families().size()), 1.0) << rounds << " rounds, all kinds together";
  }
}

TEST(Growth, LeaksAreFoundWithinTwentyRounds) {
  double sum = 0;
  for (const Family& family : leaks()) {
    const double missed = 100 - percent_growing(20, family.make);
    EXPECT_LE(missed, family.most) << family.name;
    sum += missed;
  }
  EXPECT_LE(sum / static_cast<double>(leaks().size()), 2.5);
}

TEST(Growth, FiftyRoundsFindThemAll) {
  for (const Family& family : leaks()) {
    EXPECT_LE(100 - percent_growing(50, family.make), 2.0) << family.name;
  }
}

TEST(Growth, TheRateAndItsIntervalAreRight) {
  Random random(7);
  int inside = 0;
  for (int i = 0; i < 500; ++i) {
    Series series(40);
    add_line(series, 3.2 * kMB);
    add_noise(series, random, 2 * kMB);
    std::vector<SeriesPoint> points;
    for (size_t at = 0; at < series.size(); ++at)
      points.push_back({static_cast<int64_t>(at), std::llround(series[at])});
    const Growth growth = fit_growth(points, kFloor);
    EXPECT_NEAR(growth.per_round, 3.2 * kMB, 0.2 * kMB);
    inside += growth.low <= 3.2 * kMB && 3.2 * kMB <= growth.high ? 1 : 0;
  }
  EXPECT_GE(inside, 500 * 92 / 100);
}

TEST(Growth, ABufferThatIsFullHasStopped) {
  for (const int rounds : {40, 60, 100, 120, 1000}) {
    for (const int capacity : {10, 30, rounds / 2, rounds * 4 / 5}) {
      if (rounds - capacity < 6) continue;
      Series series(static_cast<size_t>(rounds));
      for (int i = 0; i < rounds; ++i) series[static_cast<size_t>(i)] = 78 * kKB * std::min(i, capacity);
      EXPECT_EQ(verdict_of(series), GrowthVerdict::kFlat) << capacity << " of " << rounds << " rounds";
    }
  }
}

TEST(Growth, FewRoundsHaveNoVerdict) {
  for (size_t rounds = 0; rounds < kFewestPoints; ++rounds) {
    Series series(rounds);
    add_line(series, kMB);
    EXPECT_EQ(verdict_of(series), GrowthVerdict::kTooFewRounds);
  }
}

TEST(Growth, PointsNeedNotBeOfEveryRound) {
  std::vector<SeriesPoint> points;
  for (int64_t i = 1; i <= 40; ++i) points.push_back({1000 * i, 5'000'000 * i});
  const Growth growth = fit_growth(points, kFloor);
  EXPECT_EQ(growth.verdict, GrowthVerdict::kGrows);
  EXPECT_DOUBLE_EQ(growth.per_round, 5000);
}

}  // namespace
}  // namespace leadline::guard
