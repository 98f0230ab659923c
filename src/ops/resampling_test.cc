// SPDX-License-Identifier: Apache-2.0
#include "ops/resampling.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace leadline::ops {
namespace {

constexpr const char* kFilters[] = {"lanczos1", "lanczos3", "lanczos5",  "gaussian",
                                    "box",      "triangle", "keyscubic", "mitchellcubic"};

TEST(Resampling, WeightsSumToOneAndStayInside) {
  for (const char* name : kFilters) {
    for (const bool antialias : {false, true}) {
      for (const auto& [from, to] : {std::pair{6, 13}, {13, 6}, {1, 4}, {4, 1}, {100, 3}}) {
        const Resampling resampling(*resampling_filter(name), antialias, from,
                                    static_cast<float>(to) / static_cast<float>(from), 0);
        std::vector<float> weights(static_cast<size_t>(from));
        for (int64_t at = 0; at < to; ++at) {
          const auto [first, count] = resampling.weights(at, weights);
          ASSERT_GT(count, 0) << name;
          EXPECT_GE(first, 0);
          EXPECT_LE(first + count, from);
          EXPECT_NEAR(std::accumulate(weights.begin(), weights.begin() + count, 0.0F), 1.0F, 1e-5F) << name;
        }
      }
    }
  }
}

TEST(Resampling, TheSameSizeIsTheSameImage) {
  const Resampling resampling(ResamplingFilter::kTriangle, true, 5, 1, 0);
  std::vector<float> weights(5);
  for (int64_t at = 0; at < 5; ++at) {
    const auto [first, count] = resampling.weights(at, weights);
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(weights[static_cast<size_t>(i)], first + i == at ? 1.0F : 0.0F);
  }
}

TEST(Resampling, PlacesOutsideAndExtremeScalesHaveNoOrLimitedWeights) {
  std::vector<float> weights(4);
  EXPECT_EQ(Resampling(ResamplingFilter::kBox, true, 4, 1, 10).weights(0, weights).count, 0);
  // Places within the filter's reach may weigh nothing.
  const auto [at, near] = Resampling(ResamplingFilter::kBox, true, 4, 1, 10).weights(10, weights);
  EXPECT_EQ(at, 0);
  ASSERT_GT(near, 0);
  EXPECT_EQ(weights[0], 1.0F);
  for (int64_t i = 1; i < near; ++i) EXPECT_EQ(weights[static_cast<size_t>(i)], 0.0F);
  for (const float scale : {1e-45F, 1e-30F, 1e30F, 3e38F}) {
    for (const float translation : {0.0F, 1e38F, -1e38F}) {
      const auto [first, count] =
          Resampling(ResamplingFilter::kLanczos3, true, 4, scale, translation).weights(3, weights);
      EXPECT_GE(first, 0);
      EXPECT_LE(first + count, 4);
    }
  }
}

TEST(Resampling, OnlyTensorFlowsFiltersHaveNames) {
  for (const char* name : kFilters) EXPECT_TRUE(resampling_filter(name).has_value()) << name;
  EXPECT_FALSE(resampling_filter("bilinear").has_value());
  EXPECT_FALSE(resampling_filter("").has_value());
}

}  // namespace
}  // namespace leadline::ops
